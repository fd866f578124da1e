// An ideal receiver of UDP streams for virtual time: counts datagrams, checks counters and words.
#pragma once

#include "ideal_receiver.hpp"

namespace fadelink {

class IdealUdp : public VirtualReceiver {
 public:
  IdealUdp(size_t payload, Output output) : payload_(payload), output_(std::move(output)) {}

  void start(Picoseconds) override {}
  void receive(const Frame& frame, Picoseconds now) override;
  void tick(Picoseconds) override {}
  size_t packet_bytes() const override { return payload_; }

 private:
  size_t payload_;  // bytes of a full datagram
  Output output_;
  uint64_t next_ = 0;  // counter that is expected
  Picoseconds begin_ = 0;
};

}  // namespace fadelink
