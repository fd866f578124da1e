// Two boards with the UDP/IP stack on one cable, a PTP master and a PTP slave. The report: the slave's true offset (ns,
// sampled from settle_ms on), what it says of itself, and whether it is locked.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <random>

#include "capture.hpp"
#include "run.hpp"
#include "station.hpp"
#include "status_line.hpp"

namespace fadelink {
namespace {

struct Statistics {
  std::vector<double> values;

  double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }
  Json to_json() const {
    if (values.empty()) return {{"samples", 0}};
    const double middle = mean();
    double squares = 0;
    for (const double value : values) squares += (value - middle) * (value - middle);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {{"samples", values.size()}, {"mean", middle}, {"deviation", std::sqrt(squares / static_cast<double>(values.size()))},
            {"min", *least}, {"max", *most}};
  }
};

}  // namespace

int run_pair(const Options& o) {
  const StatusLine status(false);
  std::mt19937_64 random(o.seed);
  const double mhz = o.phy == "gmii" ? 125 : 156.25;
  const auto period = static_cast<Picoseconds>(1e6 / mhz + 0.5);
  const auto slave_period = static_cast<Picoseconds>(1e6 / (mhz * (1 + o.slave_ppm * 1e-6)) + 0.5);
  const auto phase = [&] { return std::uniform_int_distribution<Picoseconds>(0, period - 1)(random); };

  LinkSettings to_slave, to_master;
  to_slave.delay = to_master.delay = static_cast<Picoseconds>(o.rtt / 2 * kMicrosecond);
  for (const auto& text : o.link) {
    to_slave.parse(text);
    to_master.parse(text);
  }
  for (const auto& text : o.down) to_slave.parse(text);
  for (const auto& text : o.up) to_master.parse(text);

  BoardSettings master, slave;
  master.protocol = slave.protocol = o.protocol;
  master.phy = slave.phy = o.phy;
  master.ip = slave.ip = o.ip;
  master.wave = o.wave;
  master.mac = {0x02, 0xfa, 0xde, 0, 0, 1};
  slave.mac = {0x02, 0xfa, 0xde, 0, 0, 2};
  slave.ip.address++;
  master.ip.stopped = slave.ip.stopped = true;
  master.ptp_role = 2;
  slave.ptp_role = 1;
  // Each receives with the other's clock, as it comes over the cable.
  master.tx = {period, phase()};
  master.rx = {slave_period, phase()};
  slave.tx = {slave_period, phase()};
  slave.rx = {period, phase()};

  struct Side {
    std::unique_ptr<Board> board;
    Link out;
  };
  Side sides[2] = {{Board::create(master), Link(to_slave, o.seed * 2)}, {Board::create(slave), Link(to_master, o.seed * 2 + 1)}};
  std::unique_ptr<Capture> capture;
  if (!o.pcap.empty()) capture = std::make_unique<Capture>(o.pcap);

  Statistics truth, said, delay;
  const auto limit = static_cast<Picoseconds>(o.limit_ms * 1000 * kMicrosecond);
  const auto settle = static_cast<Picoseconds>(*o.settle_ms * 1000 * kMicrosecond);
  const auto pause = [&] { return std::uniform_int_distribution<Picoseconds>(20 * kMicrosecond, 60 * kMicrosecond)(random); };
  constexpr Picoseconds kStep = 64'000;
  Picoseconds now = 0, sample_at = settle + pause();
  while (now < limit) {
    // A step ends where a frame arrives, so that it arrives to the picosecond.
    now = std::min({now + kStep, sample_at, sides[0].out.next(), sides[1].out.next()});
    for (int i = 0; i < 2; i++) {
      Side& side = sides[i];
      side.board->run(now, [&](Frame frame, Picoseconds at) { side.out.push(std::move(frame), at); });
    }
    for (int i = 0; i < 2; i++) {
      for (Frame frame; sides[i].out.pop(frame, now);) {
        Frame copy = frame;
        if (capture && strip_fcs(copy)) capture->write(copy, now);
        sides[1 - i].board->send(std::move(frame));
      }
    }
    if (now == sample_at) {
      sample_at += pause();
      // The counters stand between their clocks' edges: half a period is what they lag behind in the mean, both.
      truth.values.push_back(static_cast<double>(sides[1].board->ptp().time - sides[0].board->ptp().time));
      said.values.push_back(sides[1].board->ptp().offset);
      delay.values.push_back(sides[1].board->ptp().delay);
    }
  }
  const auto state = sides[1].board->ptp();
  Json out{{"phy", o.phy}, {"slave_ppm", (static_cast<double>(period) / static_cast<double>(slave_period) - 1) * 1e6}, {"simulated_us", now / kMicrosecond},
                             {"wall_seconds", status.elapsed()}, {"locked", state.locked}, {"offset", truth.to_json()}, {"own_offset", said.to_json()},
                             {"path_delay", delay.to_json()},
                             {"rate_ppm", state.rate / 4294967296.0 / (static_cast<double>(period) * 1e-3) * 1e6}};
  for (const Side& side : sides) {
    Json counters;
    for (const auto& [name, value] : side.board->status().more) counters[name] = value;
    out["boards"].push_back(std::move(counters));
  }
  std::cout << out.dump(1) << "\n";
  return state.locked ? 0 : 1;
}

}  // namespace fadelink
