#include "uplink.hpp"

#include <algorithm>
#include <stdexcept>

#include "ptp_frame.hpp"

namespace fadelink {

Uplink::Uplink(const Options& o, std::vector<Station>& stations) : stations_(stations), ptp_to_computer_(!o.virtual_time) {
  if (o.switch_port.empty()) return;
  LinkSettings settings;
  for (const auto& text : o.switch_port) settings.parse(text);
  if (settings.rate == 0) throw std::invalid_argument("--switch: expected a rate, as rate=1000,queue=65536");
  rate_ = settings.rate * 1e6 / 8;
  port_.emplace(settings, o.seed * 1000 + 999);
}

void Uplink::poll(Picoseconds now, Capture* capture, const Deliver& deliver) {
  const auto arrive = [&](size_t station, const Frame& frame) {
    if (capture) capture->write(frame, now);
    deliver(station, frame);
  };
  for (size_t i = 0; i < stations_.size(); i++) {
    for (Frame frame; stations_[i].up.pop(frame, now);) {
      // A switch and a network card drop these.
      if (!strip_fcs(frame)) stations_[i].fcs_errors++;
      else if (is_ptp(frame)) to_others(i, frame, now, arrive);
      else if (port_) port_->push(with_fcs(std::move(frame)), now);
      else arrive(i, frame);
    }
  }
  for (Frame frame; port_ && port_->pop(frame, now);) {
    if (!strip_fcs(frame)) port_fcs_errors_++;
    else arrive(station_of(frame), frame);
  }
}

// Messages of PTP go to groups. Receivers in simulated time know nothing of them.
void Uplink::to_others(size_t from, const Frame& frame, Picoseconds now, const Deliver& deliver) {
  for (size_t i = 0; i < stations_.size(); i++)
    if (i != from) stations_[i].down.push(with_fcs(frame), now);
  if (ptp_to_computer_) deliver(from, frame);
}

Json Uplink::to_json() const {
  Json out = fadelink::to_json(port_->counters());
  out["fcs_errors"] = port_fcs_errors_;
  return out;
}

size_t Uplink::station_of(const Frame& frame) const {
  for (size_t i = 0; i < stations_.size(); i++)
    if (std::equal(stations_[i].mac.begin(), stations_[i].mac.end(), frame.begin() + 6)) return i;
  throw std::logic_error("switch: a frame from no board");
}

}  // namespace fadelink
