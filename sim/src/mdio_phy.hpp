// The management side of a PHY whose partner negotiates one speed, full duplex (IEEE 802.3 clauses 22.2.4 and 28).
#pragma once

#include <array>
#include <cstdint>

namespace fadelink {

class MdioPhy {
 public:
  // speed: 10, 100 or 1000 Mb/s.
  MdioPhy(unsigned address, unsigned speed) : address_(address) {
    registers_[kStatus] = 0x7949;
    registers_[kIdentifier] = 0x0141;
    registers_[kPartner] = speed == 10 ? 0x4041 : 0x4141;
    registers_[kPartner1000] = speed == 1000 ? 0x0800 : 0;
  }

  // The wires now, with what the board drives; returns what the PHY, or the pull-up, makes of MDIO.
  bool clock(bool mdc, bool drive, bool out) {
    if (mdc && !was_high_) rise(drive ? out : level_);
    was_high_ = mdc;
    return level_;
  }

 private:
  static constexpr unsigned kControl = 0, kStatus = 1, kIdentifier = 2, kPartner = 5, kPartner1000 = 10;
  static constexpr uint16_t kRestart = 0x0200, kUp = 0x0024;  // autonegotiation; link, and negotiation is complete
  // Bits of a frame behind the preamble: the first of its data.
  static constexpr unsigned kData = 16;

  void rise(bool bit) {
    if (at_ == 0) {
      if (!bit && ones_ >= 32) at_ = 1;
      ones_ = bit ? ones_ + 1 : 0;
      shift_ = 0;
      return;
    }
    shift_ = shift_ << 1 | bit;
    if (at_ == 13) {
      reads_ = (shift_ >> 10 & 3) == 2;
      mine_ = (shift_ >> 5 & 31) == address_;
      index_ = shift_ & 31;
    }
    // What the next rising edge shall see.
    if (reads_ && mine_ && at_ == kData - 2) level_ = false;
    if (reads_ && mine_ && at_ >= kData - 1) level_ = at_ < 31 ? registers_[index_] >> (30 - at_) & 1 : true;
    if (at_ == 31) {
      if (!reads_ && mine_) write(static_cast<uint16_t>(shift_));
      reads_ = mine_ = false;
      at_ = ones_ = 0;
      return;
    }
    at_++;
  }

  void write(uint16_t value) {
    registers_[index_] = value;
    if (index_ == kControl && (value & kRestart) != 0) registers_[kStatus] |= kUp;
  }

  const unsigned address_;
  std::array<uint16_t, 32> registers_{};
  uint32_t shift_ = 0;
  unsigned at_ = 0, ones_ = 0, index_ = 0;
  bool was_high_ = false, level_ = true, reads_ = false, mine_ = false;
};

}  // namespace fadelink
