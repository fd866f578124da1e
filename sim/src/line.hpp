// The wire at the pins of a MAC: frames to GMII or XGMII words, one a clock, and back.
#pragma once

#include <deque>
#include <optional>

#include "frame.hpp"
#include "ptp_frame.hpp"

namespace fadelink {

// Frames that wait for the pins, with their frame check sequence (right or wrong). The time that an event message of PTP waits is
// added to its correction, as a transparent clock does (IEEE 1588-2008, 11.5.2); so others on the line do not change its time.
class LineQueue {
 public:
  Picoseconds period = 0;  // of a clock

  void push(Frame frame) { frames_.push_back({std::move(frame), clocks_ + 1}); }
  bool empty() const { return frames_.empty() && !busy_; }

 protected:
  struct Waiting {
    Frame frame;
    uint64_t clock;  // in which it could begin
  };

  // The next frame begins.
  void begin() {
    Waiting& next = frames_.front();
    if (clocks_ != next.clock) correct_event_time(next.frame, (clocks_ - next.clock) * period);
    busy_ = true;
    at_ = 0;
  }

  std::deque<Waiting> frames_;
  bool busy_ = false;
  size_t at_ = 0;
  unsigned gap_ = 0;
  uint64_t clocks_ = 0;
};

constexpr uint8_t kPreamble = 0x55, kSfd = 0xD5;

class GmiiSender : public LineQueue {
 public:
  struct Pins {
    uint8_t data = 0;
    bool valid = false;
  };

  Pins clock() {
    clocks_++;
    if (gap_ > 0) {
      gap_--;
      return {};
    }
    if (!busy_) {
      if (frames_.empty()) return {};
      begin();
    }
    const Frame& frame = frames_.front().frame;
    const uint8_t byte = at_ < 7 ? kPreamble : at_ == 7 ? kSfd : frame[at_ - 8];
    if (++at_ == frame.size() + 8) {
      frames_.pop_front();
      busy_ = false;
      gap_ = 12;
    }
    return {byte, true};
  }

};

class GmiiReceiver {
 public:
  // A frame with its frame check sequence, in the clock after its last byte.
  std::optional<Frame> clock(uint8_t data, bool valid, bool error) {
    if (valid) {
      bad_ |= error;
      if (in_frame_) frame_.push_back(data);
      in_frame_ |= data == kSfd;
      return {};
    }
    if (!in_frame_) return {};
    in_frame_ = false;
    if (bad_) frame_.clear();
    bad_ = false;
    return std::exchange(frame_, {});
  }

 private:
  Frame frame_;
  bool in_frame_ = false, bad_ = false;
};

constexpr uint8_t kXgmiiIdle = 0x07, kXgmiiStart = 0xFB, kXgmiiTerminate = 0xFD;

class XgmiiSender : public LineQueue {
 public:
  struct Pins {
    uint64_t data = 0x0707070707070707;
    uint8_t control = 0xFF;
  };

  Pins clock() {
    Pins pins;
    clocks_++;
    if (!busy_) {
      if (frames_.empty() || gap_ > 4) {
        gap_ -= gap_ < 8 ? gap_ : 8;
        return pins;
      }
      // Frames start in lane 4 when the gap ends there, so both start lanes are used.
      begin();
      lane_ = gap_ > 0 ? 4 : 0;
      gap_ = 0;
    } else {
      lane_ = 0;
    }
    const Frame& frame = frames_.front().frame;
    const size_t length = frame.size() + 8;
    for (unsigned lane = lane_; lane < 8; lane++) {
      uint8_t byte = kXgmiiIdle;
      bool control = false;
      if (at_ == 0) {
        byte = kXgmiiStart;
        control = true;
      } else if (at_ < 7) {
        byte = kPreamble;
      } else if (at_ == 7) {
        byte = kSfd;
      } else if (at_ < length) {
        byte = frame[at_ - 8];
      } else if (at_ == length) {
        byte = kXgmiiTerminate;
        control = true;
        gap_ = 12 - (8 - lane);
      } else {
        break;
      }
      at_++;
      pins.data = (pins.data & ~(uint64_t{0xFF} << (8 * lane))) | uint64_t{byte} << (8 * lane);
      if (!control) pins.control &= static_cast<uint8_t>(~(1u << lane));
    }
    if (at_ > length) {
      frames_.pop_front();
      busy_ = false;
    }
    return pins;
  }

 private:
  unsigned lane_ = 0;
};

class XgmiiReceiver {
 public:
  // A frame with its frame check sequence, in the clock of its terminate character.
  std::optional<Frame> clock(uint64_t data, uint8_t control) {
    if (control == 0 && in_frame_ && skip_ == 0) {
      const size_t size = frame_.size();
      frame_.resize(size + 8);
      for (unsigned i = 0; i < 8; i++) frame_[size + i] = static_cast<uint8_t>(data >> (8 * i));
      return {};
    }
    std::optional<Frame> done;
    for (unsigned lane = 0; lane < 8; lane++) {
      const auto byte = static_cast<uint8_t>(data >> (8 * lane));
      const bool is_control = control >> lane & 1;
      if (is_control && byte == kXgmiiStart) {
        in_frame_ = true;
        frame_.clear();
        skip_ = 7;  // preamble and start delimiter
      } else if (is_control && in_frame_) {
        in_frame_ = false;
        if (byte == kXgmiiTerminate) done = std::exchange(frame_, {});
      } else if (in_frame_ && skip_ > 0) {
        skip_--;
      } else if (in_frame_) {
        frame_.push_back(byte);
      }
    }
    return done;
  }

 private:
  Frame frame_;
  bool in_frame_ = false;
  unsigned skip_ = 0;
};

}  // namespace fadelink
