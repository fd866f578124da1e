// An ideal receiver for virtual time: confirms at once, checks every word, sends commands.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "frame.hpp"

namespace fadelink {

// What a run in virtual time needs of a receiver.
class VirtualReceiver {
 public:
  struct Result {
    uint64_t packets = 0, words = 0, wrong_words = 0, duplicates = 0, protocol_errors = 0, commands = 0;
    Picoseconds measured = 0;         // from the end of the warm-up to the last packet before STOP
    uint64_t measured_packets = 0, measured_commands = 0;
    bool complete = false;
  };
  using Output = std::function<void(Frame)>;

  virtual ~VirtualReceiver() = default;
  virtual void start(Picoseconds now) = 0;
  // `frame` without its frame check sequence.
  virtual void receive(const Frame& frame, Picoseconds now) = 0;
  // Repeats what is overdue.
  virtual void tick(Picoseconds now) = 0;
  // Bytes of data in a packet.
  virtual size_t packet_bytes() const = 0;
  bool done() const { return result_.complete; }
  const Result& result() const { return result_; }

 protected:
  Result result_;
};

class IdealReceiver : public VirtualReceiver {
 public:
  struct Settings {
    Mac feb{};
    bool fade1 = false;  // FADE v1, else FADE-10G
    uint64_t packets = 2000;  // to receive before STOP
    uint64_t warmup = 200;    // packets before the measurement begins
    bool commands = false;    // a user command after each response
    uint32_t first_packet = 0;  // of FADE v1: the first set
    bool pattern = true;  // the words are those of the counter
    std::string save;     // file of all words, empty: none
    Picoseconds command_timeout = 1000 * kMicrosecond;
  };
  // Throws std::runtime_error if the file cannot be written.
  IdealReceiver(const Settings& settings, Output output);

  void start(Picoseconds now) override;
  void receive(const Frame& frame, Picoseconds now) override;
  void tick(Picoseconds now) override;
  size_t packet_bytes() const override { return settings_.fade1 ? 1024 : 8192; }

 private:
  void command(uint16_t code, uint32_t argument, Picoseconds now);
  void send_command(Picoseconds now);
  void on_response(const uint8_t* response, Picoseconds now);
  void on_data(uint32_t packet, const Frame& frame, bool last, Picoseconds now);
  void on_fade1(const Frame& frame, Picoseconds now);
  void confirm(const Frame& frame);
  void deliver(const Frame& frame, bool last, Picoseconds now);

  Settings settings_;
  std::ofstream file_;
  Output output_;
  bool started_ = false, stop_sent_ = false, waiting_ = false;
  uint16_t code_ = 0, csn_ = 0;
  uint32_t argument_ = 0;
  Picoseconds command_at_ = 0, warm_at_ = 0, data_at_ = 0;
  uint64_t warm_commands_ = 0;
  uint32_t next_ = 0;
  std::map<uint32_t, std::pair<Frame, bool>> ahead_;  // by distance from the first packet
};

}  // namespace fadelink
