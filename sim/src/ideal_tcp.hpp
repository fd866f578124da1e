// An ideal TCP receiver for virtual time: confirms each segment at once, checks every word. A board finds its address from the
// start on, so it begins there. A packet of its result is a word.
#pragma once

#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "ideal_receiver.hpp"

namespace fadelink {

class IdealTcp : public VirtualReceiver {
 public:
  struct Settings {
    Mac feb{};
    uint16_t port = 10000;     // of the receiver
    uint16_t mss = 8960;       // bytes
    uint32_t window = 1 << 30;  // bytes, told with a scale
    unsigned streams = 1;
    bool pattern = true;  // words are a counter, and checked
    std::string save;     // file of each stream: this, a dot and the board's port; empty: none
  };

  IdealTcp(const Settings& settings, Output output) : settings_(settings), output_(std::move(output)) {}

  void start(Picoseconds) override;
  void receive(const Frame& frame, Picoseconds now) override;
  void tick(Picoseconds) override {}
  size_t packet_bytes() const override { return 8; }

 private:
  struct Stream {
    uint32_t first = 0;                 // number of the first byte
    uint64_t bytes = 0;                 // in order
    std::map<uint64_t, Frame> ahead;    // data that came early, by its place
    bool ended = false;
    bool selective = false;             // agreed (RFC 2018)
    uint64_t latest = 0;                // place of the last segment
    bool marks = false, marked = false;  // agreed (RFC 3168); one came, and the board's CWR not yet
    std::ofstream file;
  };

  void on_segment(const Frame& frame);
  void deliver(Stream& stream, uint64_t place, const uint8_t* data, size_t size);
  void answer(const Frame& frame, const Stream& stream, unsigned flags);
  Frame options(const Stream& stream, bool syn, unsigned scale) const;

  Settings settings_;
  Output output_;
  bool started_ = false;
  std::optional<Frame> waiting_;  // answer to the board's last ARP request before the start
  std::map<uint16_t, Stream> streams_;  // by the board's port
};

}  // namespace fadelink
