#include <algorithm>
#include <iostream>
#include <random>

#include "ideal_receiver.hpp"
#include "ideal_tcp.hpp"
#include "ideal_udp.hpp"
#include "run.hpp"
#include "status_line.hpp"
#include "uplink.hpp"

namespace fadelink {
namespace {

std::unique_ptr<VirtualReceiver> make_receiver(const Options& o, const Mac& feb, const VirtualReceiver::Output& output) {
  if (is_tcp(o)) {
    IdealTcp::Settings settings;
    settings.feb = feb;
    settings.port = o.ip.peer_port;
    settings.streams = streams(o);
    settings.pattern = o.protocol == "tcp";
    if (!o.save.empty()) settings.save = o.save + "." + to_string(feb);
    settings.window = o.receive_window;
    return std::make_unique<IdealTcp>(settings, output);
  }
  if (o.protocol == "udp") return std::make_unique<IdealUdp>(o.ip.payload, output);
  IdealReceiver::Settings settings;
  settings.feb = feb;
  settings.fade1 = o.protocol == "fade1";
  settings.packets = o.share_from_ms > 0 ? UINT64_MAX : o.packets;
  settings.warmup = *o.warmup;
  settings.commands = o.commands;
  settings.first_packet = o.first_packet;
  settings.pattern = !o.source.crate;
  if (!o.save.empty()) settings.save = o.save + "." + to_string(feb);
  settings.command_timeout += static_cast<Picoseconds>(4 * o.rtt * kMicrosecond);
  return std::make_unique<IdealReceiver>(settings, output);
}

// Pulses in the detectors of all crates at the same times.
class TestPulses {
 public:
  explicit TestPulses(double us) : every_(static_cast<Picoseconds>(us * kMicrosecond)), next_(every_ > 0 ? every_ : ~Picoseconds{0}) {}
  Picoseconds next() const { return next_; }
  void step(std::vector<Station>& stations) {
    level_ = !level_;
    next_ += level_ ? kLength : every_ - kLength;
    for (auto& s : stations) s.board->pulse(level_);
  }

 private:
  static constexpr Picoseconds kLength = 100'000;
  const Picoseconds every_;
  Picoseconds next_;
  bool level_ = false;
};

}  // namespace

void show_status(const Options& o, const std::vector<std::unique_ptr<VirtualReceiver>>& receivers, Picoseconds now, StatusLine& status) {
  const double ms = static_cast<double>(now) / (1000 * kMicrosecond);
  uint64_t packets = 0;
  for (const auto& r : receivers) packets += r->result().packets;
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << ms << " ms simulated, " << packets << " packets";
  const bool is_fade = o.protocol == "fade10g" || o.protocol == "fade1";
  const double done = o.share_from_ms > 0 ? ms / o.limit_ms
                      : is_fade           ? static_cast<double>(packets) / static_cast<double>(o.packets * receivers.size())
                                          : 0;
  status.show(text.str(), std::min(done, 1.0));
}

int run_virtual(const Options& o) {
  constexpr Picoseconds kStep = 64'000;  // how exactly frames cross between board and receiver
  std::vector<Station> stations = make_stations(o);
  std::unique_ptr<Capture> capture;
  if (!o.pcap.empty()) capture = std::make_unique<Capture>(o.pcap);
  StatusLine status(o.status || !o.json);

  Uplink uplink(o, stations);
  std::vector<std::unique_ptr<VirtualReceiver>> receivers;
  Picoseconds now = kMicrosecond;
  for (auto& s : stations) {
    const VirtualReceiver::Output output = [&s, &now, &capture](Frame frame) {
      if (capture) capture->write(frame, now);
      s.down.push(with_fcs(std::move(frame)), now);
    };
    receivers.push_back(make_receiver(o, s.mac, output));
  }
  for (auto& s : stations) advance(s, now);
  std::mt19937_64 random(o.seed + 1);
  std::vector<Picoseconds> start_at;
  for (size_t i = 0; i < stations.size(); i++)
    start_at.push_back(now + static_cast<Picoseconds>(std::uniform_real_distribution<>(0, o.spread_us)(random) * kMicrosecond));
  const auto limit = static_cast<Picoseconds>(o.limit_ms * 1000 * kMicrosecond);
  const auto share_from = static_cast<Picoseconds>(o.share_from_ms * 1000 * kMicrosecond);
  std::vector<uint64_t> before(stations.size(), 0);
  uint64_t port_before = 0;
  bool all_done = false;
  const bool exact = std::any_of(o.ptp.begin(), o.ptp.end(), [](unsigned role) { return role != 0; });
  TestPulses pulses(o.test_pulse_us);
  while (!all_done && now < limit && !interrupted) {
    if (share_from > 0 && now < share_from && now + kStep >= share_from) {
      for (size_t i = 0; i < stations.size(); i++) before[i] = receivers[i]->result().packets;
      if (uplink.is_switched()) port_before = uplink.bytes();
    }
    // For PTP a step ends where a frame arrives, so that it arrives to the picosecond.
    Picoseconds next = std::min(now + kStep, pulses.next());
    for (const auto& s : stations) if (exact) next = std::min({next, s.up.next(), s.down.next()});
    now = std::max(next, now);
    all_done = true;
    for (size_t i = 0; i < stations.size(); i++) {
      advance(stations[i], now);
      if (start_at[i] < now) {
        receivers[i]->start(now);
        start_at[i] = UINT64_MAX;
      }
      receivers[i]->tick(now);
      all_done &= receivers[i]->done();
    }
    if (now >= pulses.next()) pulses.step(stations);
    uplink.poll(now, capture.get(), [&](size_t i, const Frame& frame) { receivers[i]->receive(frame, now); });
    if (status.is_due()) show_status(o, receivers, now, status);
  }
  status.clear();

  Json out{{"protocol", o.protocol}, {"phy", o.phy}, {"window", o.window}, {"rtt_us", o.rtt},
           {"simulated_us", now / kMicrosecond}, {"wall_seconds", status.elapsed()}};
  if (uplink.is_switched()) {
    out["switch"] = uplink.to_json();
    if (share_from > 0)
      out["switch"]["use"] = static_cast<double>(uplink.bytes() - port_before) / uplink.rate() / (static_cast<double>(now - share_from) * 1e-12);
  }
  bool good = all_done || share_from > 0;
  for (size_t i = 0; i < stations.size(); i++) {
    const auto& r = receivers[i]->result();
    const uint64_t packets = share_from > 0 ? r.packets - before[i] : r.measured_packets;
    const double elapsed = static_cast<double>(share_from > 0 ? now - share_from : r.measured) * 1e-12;
    const double goodput = elapsed > 0 ? static_cast<double>(packets * receivers[i]->packet_bytes() * 8) / elapsed : 0;
    Json board = to_json(stations[i]);
    board["complete"] = r.complete;
    board["packets"] = r.packets;
    board["words"] = r.words;
    board["wrong_words"] = r.wrong_words;
    board["duplicates"] = r.duplicates;
    board["protocol_errors"] = r.protocol_errors;
    board["goodput_bps"] = goodput;
    board["link_use"] = goodput / stations[i].board->line_rate();
    board["commands"] = r.commands;
    board["commands_per_second"] = r.measured > 0 ? static_cast<double>(r.measured_commands) / elapsed : 0;
    good &= (r.complete || share_from > 0) && r.wrong_words == 0 && r.protocol_errors == 0;
    if (!o.json)
      std::cout << to_string(stations[i].mac) << ": " << r.words << " words, " << r.wrong_words << " wrong, link use "
                << 100 * goodput / stations[i].board->line_rate() << " %, " << board["retransmitted"]
                << " retransmitted, " << (r.complete ? "complete" : share_from > 0 ? "running" : "NOT COMPLETE") << "\n";
    out["boards"].push_back(std::move(board));
  }
  if (o.json) std::cout << out.dump(1) << "\n";
  else std::cout << pace(static_cast<double>(now) * 1e-12, out["wall_seconds"]) << "\n";
  return good ? 0 : 1;
}

}  // namespace fadelink
