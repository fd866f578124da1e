#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "netif.hpp"
#include "run.hpp"
#include "status_line.hpp"
#include "uplink.hpp"

namespace fadelink {
namespace {

using Clock = std::chrono::steady_clock;

// Simulated when everything has arrived, so that boards obey it.
constexpr Picoseconds kLastSteps = 200 * kMicrosecond;

// What the boards have sent since the last call, and in all.
class Rates {
 public:
  std::string text(const std::vector<Station>& stations, Picoseconds simulated, double elapsed) {
    std::ostringstream line;
    line << std::fixed << std::setprecision(1) << static_cast<double>(simulated) * 1e-9 << " ms simulated";
    sent_.resize(stations.size());
    for (size_t i = 0; i < stations.size(); i++) {
      const BoardStatus b = stations[i].board->status();
      const double rate = (b.sent - sent_[i]) / (elapsed - elapsed_);
      sent_[i] = b.sent;
      line << " | " << to_string(stations[i].mac).substr(9) << (b.running ? ": " : " idle: ") << rate << " packets/s, "
           << b.sent << " sent, " << b.retransmitted << " of them again";
    }
    elapsed_ = elapsed;
    return line.str();
  }

 private:
  std::vector<uint32_t> sent_;
  double elapsed_ = 0;
};

}  // namespace

int run_interface(const Options& o) {
  std::vector<Station> stations = make_stations(o);
  Uplink uplink(o, stations);
  const std::map<std::string, int> mtu = {{"fade10g", kMtuFade10g}, {"fade1", kMtuFade1}, {"tcp", o.ip.mtu}, {"fadc", o.ip.mtu}, {"udp", kMtuUdp}};
  NetInterface net(o.iface, o.create_tap, o.packet_socket, mtu.at(o.protocol));
  std::unique_ptr<Capture> capture;
  if (!o.pcap.empty()) capture = std::make_unique<Capture>(o.pcap);

  constexpr Picoseconds kStep = kMicrosecond;
  const auto begin = Clock::now();
  auto last_connected = begin;
  StatusLine status(o.status || !o.json);
  Rates rates;
  Picoseconds now = 0;
  // Without the time in which all boards were idle.
  double simulating = 0;
  Frame frame;
  std::cerr << "fadelink-sim: " << stations.size() << " board(s) on " << o.iface << ", " << o.protocol << ", ";
  if (o.board.empty()) std::cerr << o.phy << ", window " << o.window << "\n";
  else std::cerr << o.board << " from pin to pin, " << o.phy << ", " << o.speed << " Mb/s\n";
  // Simulated time when the program ends, behind what came before its end was asked for; 0: nobody has.
  Picoseconds last = 0;
  for (;;) {
    const auto wall = Clock::now();
    const double elapsed = std::chrono::duration<double>(wall - begin).count();
    const bool ending = interrupted || (o.duration > 0 && elapsed >= o.duration);
    bool closing = false;
    if (ending) {
      bool running = false, connected = false;
      for (const auto& s : stations) {
        running |= s.board->status().running;
        connected |= s.board->status().connections > 0;
      }
      if (connected || last == 0) last_connected = wall;
      if (last == 0 && is_tcp(o)) for (auto& s : stations) s.board->close();
      // Open connections end as their users expect; a second signal, or no receiver, does not wait for that.
      closing = is_tcp(o) && running && wall - last_connected <= std::chrono::seconds(2);
      if (interrupted > 1 || (last > 0 && !closing && now >= last)) break;
    }
    if (status.is_due())
      status.show(rates.text(stations, now, elapsed), o.duration > 0 ? std::min(elapsed / o.duration, 1.0) : 0);

    bool quiet = uplink.empty();
    for (auto& s : stations) quiet &= s.board->idle() && s.up.empty() && s.down.empty();
    // An idle board needs no simulation, and simulated time never overtakes the clock on the wall.
    if (quiet) net.wait(20);
    else if (static_cast<double>(now) * 1e-12 > elapsed) net.wait(1);

    while (net.receive(frame)) {
      if (capture) capture->write(frame, now);
      // As a switch does: to the board that is addressed, else to all.
      Station* target = nullptr;
      for (auto& s : stations)
        if (frame.size() >= 6 && std::equal(s.mac.begin(), s.mac.end(), frame.begin())) target = &s;
      for (auto& s : stations)
        if (target == nullptr || target == &s) s.down.push(with_fcs(frame), now);
      quiet = false;
    }
    if (quiet && ending && !closing) break;
    if (ending && last == 0) {
      last = now;
      for (const auto& s : stations) last = std::max(last, s.down.latest());
      last += kLastSteps;
    }
    if (quiet) continue;
    now += kStep;
    for (auto& s : stations) advance(s, now);
    uplink.poll(now, capture.get(), [&](size_t i, const Frame& f) { stations[i].send_failures += !net.send(f); });
    simulating += std::chrono::duration<double>(Clock::now() - wall).count();
  }
  status.clear();
  if (o.json) {
    Json out{{"iface", o.iface}, {"protocol", o.protocol}, {"phy", o.phy}, {"simulated_us", now / kMicrosecond}, {"wall_seconds", simulating}};
    if (o.board.empty()) out["window"] = o.window;
    else out.update({{"board", o.board}, {"speed", o.speed}});
    if (uplink.is_switched()) out["switch"] = uplink.to_json();
    for (const auto& s : stations) out["boards"].push_back(to_json(s));
    std::cout << out.dump(1) << "\n";
  } else {
    std::cout << pace(static_cast<double>(now) * 1e-12, simulating) << "\n";
  }
  return 0;
}

}  // namespace fadelink
