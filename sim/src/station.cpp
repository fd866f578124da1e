#include "station.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace fadelink {
namespace {

ClockSettings clock_of(double mhz, double ppm) {
  const double period = 1e6 / (mhz * (1 + ppm * 1e-6));
  ClockSettings clock;
  clock.period = static_cast<Picoseconds>(period);
  clock.fraction = static_cast<unsigned>((period - static_cast<double>(clock.period)) * 1024);
  return clock;
}

// Nominal.
double line_mhz_of(const std::string& phy) { return phy == "gmii" ? 125 : 156.25; }

}  // namespace

std::vector<Station> make_stations(const Options& o) {
  LinkSettings up, down;
  up.delay = down.delay = static_cast<Picoseconds>(o.rtt / 2 * kMicrosecond);
  for (const auto& text : o.link) {
    up.parse(text);
    down.parse(text);
  }
  for (const auto& text : o.up) up.parse(text);
  for (const auto& text : o.down) down.parse(text);

  std::vector<Mac> macs;
  for (const auto& text : o.febs) macs.push_back(parse_mac(text));
  for (unsigned i = 1; macs.size() < o.boards; i++)
    macs.push_back({0x02, 0xfa, 0xde, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)});

  std::mt19937_64 random(o.seed);
  std::vector<Station> stations;
  for (size_t i = 0; i < macs.size(); i++) {
    for (size_t j = 0; j < i; j++)
      if (macs[i] == macs[j]) throw std::invalid_argument("--feb " + to_string(macs[i]) + ": given twice");
    BoardSettings s;
    s.protocol = o.protocol;
    s.phy = o.phy;
    s.board = o.board;
    s.speed = o.speed;
    s.window = o.window;
    s.paper_rule = o.paper_rule;
    s.source = o.source;
    s.mac = macs[i];
    s.first_packet = o.first_packet;
    s.first_sequence = o.first_sequence;
    s.ip = o.ip;
    if (!o.ptp.empty()) s.ptp_role = o.ptp[std::min(i, o.ptp.size() - 1)];
    s.ip.address += static_cast<uint32_t>(i);
    s.fadc = o.fadc;
    s.fadc.source_id += static_cast<uint32_t>(i << 8);
    s.fadc.seed += static_cast<uint32_t>(i);
    double line_mhz = line_mhz_of(o.phy);
    if (!o.line_mhz.empty()) line_mhz = o.line_mhz[std::min(i, o.line_mhz.size() - 1)];
    const double error = std::uniform_real_distribution<>(-o.spread_ppm, o.spread_ppm)(random);
    // A board from pin to pin has those of its oscillators.
    if (o.board.empty()) {
      s.tx = clock_of(line_mhz, o.tx_ppm + error);
      s.rx = clock_of(line_mhz, o.rx_ppm + error);
    }
    // One oscillator a board.
    if (o.spread_ppm > 0) s.user = clock_of(has_crate(o) ? 1e6 / (kSamples * kSamplePeriod) : line_mhz_of(o.phy), error);
    if (o.user_mhz > 0) {
      s.user = clock_of(o.user_mhz, error);
      s.user.phase = 1234;
    }
    if (!o.wave.empty()) s.wave = i == 0 ? o.wave : o.wave + "." + std::to_string(i + 1);
    if (!o.record.empty()) s.record = o.record + "." + std::to_string(i + 1);
    stations.push_back({macs[i], Board::create(s), Link(up, o.seed * 1000 + 2 * i), Link(down, o.seed * 1000 + 2 * i + 1)});
  }
  return stations;
}

Json to_json(const LinkCounters& c) {
  return {{"frames", c.frames},       {"lost", c.lost},           {"duplicated", c.duplicated},
          {"reordered", c.reordered}, {"corrupted", c.corrupted}, {"queue_full", c.queue_full},
          {"marked", c.marked}};
}

Json to_json(const Station& s) {
  const BoardStatus b = s.board->status();
  Json out{{"feb", to_string(s.mac)},
          {"running", b.running},
          {"sent", b.sent},
          {"retransmitted", b.retransmitted},
          {"early", b.early},
          {"delay", b.delay},
          {"fcs_errors", s.fcs_errors},
          {"send_failures", s.send_failures},
          {"up", to_json(s.up.counters())},
          {"down", to_json(s.down.counters())}};
  for (const auto& [name, value] : b.more) out[name] = value;
  return out;
}

void advance(Station& s, Picoseconds until) {
  s.board->run(until, [&s](Frame frame, Picoseconds now) { s.up.push(std::move(frame), now); });
  for (Frame frame; s.down.pop(frame, until);) s.board->send(std::move(frame));
}

}  // namespace fadelink
