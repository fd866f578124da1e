#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "netif.hpp"
#include "run.hpp"
#include "uplink.hpp"

namespace fadelink {
namespace {

using Clock = std::chrono::steady_clock;

void show_status(const std::vector<Station>& stations, Picoseconds simulated, double wall) {
  std::cerr << "\r\033[K" << static_cast<double>(simulated) * 1e-9 << " ms simulated in " << wall << " s";
  for (const auto& s : stations) {
    const BoardStatus b = s.board->status();
    std::cerr << " | " << to_string(s.mac).substr(9) << (b.running ? " running" : " idle") << ", sent " << b.sent
              << ", again " << b.retransmitted << ", delay " << b.delay;
  }
  std::cerr << std::flush;
}

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
  auto last_status = begin, last_connected = begin;
  const bool status = o.status || (isatty(STDERR_FILENO) && !o.json);
  Picoseconds now = 0;
  Frame frame;
  std::cerr << "fadelink-sim: " << stations.size() << " board(s) on " << o.iface << ", " << o.protocol << ", " << o.phy
            << ", window " << o.window << "\n";
  bool closing = false;
  for (;;) {
    const auto wall = Clock::now();
    const double elapsed = std::chrono::duration<double>(wall - begin).count();
    if (interrupted || (o.duration > 0 && elapsed >= o.duration)) {
      // Open connections end as their users expect; a second signal, or no receiver, does not wait for that.
      bool running = false, connected = false;
      for (const auto& s : stations) {
        running |= s.board->status().running;
        connected |= s.board->status().connections > 0;
      }
      if (connected || !closing) last_connected = wall;
      if (!is_tcp(o) || !running || interrupted > 1 || wall - last_connected > std::chrono::seconds(2)) break;
      if (!closing) for (auto& s : stations) s.board->close();
      closing = true;
    }
    if (status && wall - last_status >= std::chrono::seconds(1)) {
      last_status = wall;
      show_status(stations, now, elapsed);
    }

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
    if (quiet) continue;
    now += kStep;
    for (auto& s : stations) advance(s, now);
    uplink.poll(now, capture.get(), [&](size_t i, const Frame& f) { stations[i].send_failures += !net.send(f); });
  }
  if (status) std::cerr << "\n";
  if (o.json) {
    Json out{{"iface", o.iface}, {"protocol", o.protocol}, {"phy", o.phy}, {"window", o.window},
             {"simulated_us", now / kMicrosecond}};
    if (uplink.is_switched()) out["switch"] = uplink.to_json();
    for (const auto& s : stations) out["boards"].push_back(to_json(s));
    std::cout << out.dump(1) << "\n";
  }
  return 0;
}

}  // namespace fadelink
