// The path from the boards to the computer.
#pragma once

#include <functional>
#include <optional>

#include "capture.hpp"
#include "station.hpp"

namespace fadelink {

// Each board's link, then, if there is one, the port of a switch that they share, with its rate and its queue. Messages of PTP go
// to all other boards, too, and do not wait in that queue.
class Uplink {
 public:
  using Deliver = std::function<void(size_t station, const Frame& frame)>;

  Uplink(const Options& o, std::vector<Station>& stations);
  // Moves frames that have arrived in time to `deliver`.
  void poll(Picoseconds now, Capture* capture, const Deliver& deliver);
  bool empty() const { return !port_ || port_->empty(); }
  bool is_switched() const { return port_.has_value(); }
  Json to_json() const;
  // Bytes that the port has sent or has in its queue, with preamble and gap; how many it sends in a second.
  uint64_t bytes() const { return port_->counters().bytes; }
  double rate() const { return rate_; }

 private:
  size_t station_of(const Frame& frame) const;
  void to_others(size_t from, const Frame& frame, Picoseconds now, const Deliver& deliver);

  std::vector<Station>& stations_;
  const bool ptp_to_computer_;
  std::optional<Link> port_;
  double rate_ = 0;
  uint64_t port_fcs_errors_ = 0;
};

}  // namespace fadelink
