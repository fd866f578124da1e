// fadelink-sim: simulated boards on a network interface, or in virtual time.
#include <arpa/inet.h>

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <nlohmann/json.hpp>

#include "board.hpp"
#include "capture.hpp"
#include "ideal_receiver.hpp"
#include "ideal_tcp.hpp"
#include "ideal_udp.hpp"
#include "link.hpp"
#include "netif.hpp"
#include "ptp_pair.hpp"

namespace fadelink {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

volatile sig_atomic_t interrupted = 0;

struct Options {
  std::string iface, pcap, wave, phy, protocol = "fade10g";
  std::vector<std::string> febs, link, up, down, switch_port;
  bool create_tap = false, packet_socket = false, virtual_time = false, json = false, commands = false, status = false;
  bool paper_rule = false;
  SourceSettings source;
  IpSettings ip;
  FadcSettings fadc;
  std::string address, peer_ip, gateway, save;
  unsigned prefix = 24;
  uint32_t receive_window = 1 << 30;
  std::vector<double> line_mhz;
  double share_from_ms = 0, settle_ms = 50, slave_ppm = 0;
  bool ptp_pair = false;
  unsigned boards = 1, window = 32;
  uint64_t seed = 1, packets = 2000, warmup = 200;
  uint32_t first_packet = 0;
  uint16_t first_sequence = 0;
  double duration = 0, rtt = 0, limit_ms = 10000;
  double user_mhz = 0, tx_ppm = 0, rx_ppm = 0, spread_ppm = 0, spread_us = 0;
};

// A board and the two directions of its link.
struct Station {
  Mac mac;
  std::unique_ptr<Board> board;
  Link up, down;
  uint64_t fcs_errors = 0, send_failures = 0;
};

// A crate of FADC modules sends by the TCP sender, too.
bool is_tcp(const Options& o) { return o.protocol == "tcp" || o.protocol == "fadc"; }

// Connections of each board.
unsigned streams(const Options& o) { return o.protocol != "fadc" ? o.ip.streams : o.phy == "gmii" ? 1 : 4; }

Picoseconds period(double mhz, double ppm) {
  return static_cast<Picoseconds>(1e6 / (mhz * (1 + ppm * 1e-6)) + 0.5);
}

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
    s.window = o.window;
    s.paper_rule = o.paper_rule;
    s.source = o.source;
    s.mac = macs[i];
    s.first_packet = o.first_packet;
    s.first_sequence = o.first_sequence;
    s.ip = o.ip;
    s.ip.address += static_cast<uint32_t>(i);
    s.fadc = o.fadc;
    s.fadc.source_id += static_cast<uint32_t>(i << 8);
    s.fadc.seed += static_cast<uint32_t>(i);
    double line_mhz = o.phy == "gmii" ? 125 : 156.25;
    if (!o.line_mhz.empty()) line_mhz = o.line_mhz[std::min(i, o.line_mhz.size() - 1)];
    const double error = std::uniform_real_distribution<>(-o.spread_ppm, o.spread_ppm)(random);
    s.tx.period = period(line_mhz, o.tx_ppm + error);
    s.rx.period = period(line_mhz, o.rx_ppm + error);
    if (o.user_mhz > 0) s.user = {period(o.user_mhz, 0), 1234};
    if (!o.wave.empty()) s.wave = i == 0 ? o.wave : o.wave + "." + std::to_string(i + 1);
    stations.push_back({macs[i], Board::create(s), Link(up, o.seed * 1000 + 2 * i), Link(down, o.seed * 1000 + 2 * i + 1)});
  }
  return stations;
}

Json to_json(const LinkCounters& c) {
  return {{"frames", c.frames},       {"lost", c.lost},           {"duplicated", c.duplicated},
          {"reordered", c.reordered}, {"corrupted", c.corrupted}, {"queue_full", c.queue_full}};
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

// An IPv4 address; throws with the name of the option.
uint32_t parse_ip(const char* option, const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1)
    throw std::invalid_argument(std::string(option) + " " + text + ": expected an IPv4 address, as 10.9.0.2");
  return ntohl(address.s_addr);
}

void finish(Options& o) {
  if (!o.address.empty()) o.ip.address = parse_ip("--ip", o.address);
  if (!o.peer_ip.empty()) o.ip.peer = parse_ip("--peer", o.peer_ip);
  if (!o.gateway.empty()) o.ip.gateway = parse_ip("--gateway", o.gateway);
  o.ip.mask = o.prefix == 0 ? 0 : ~uint32_t{0} << (32 - o.prefix);
  o.ip.first_sequence = o.first_sequence;
}

// The way from the boards to the computer: each one's link, then, if there is one, the port of a switch that they
// share, with its rate and its queue.
class Uplink {
 public:
  Uplink(const Options& o, std::vector<Station>& stations) : stations_(stations) {
    if (o.switch_port.empty()) return;
    LinkSettings settings;
    for (const auto& text : o.switch_port) settings.parse(text);
    if (settings.rate == 0) throw std::invalid_argument("--switch: expected a rate, as rate=1000,queue=65536");
    port_.emplace(settings, o.seed * 1000 + 999);
  }

  // Moves frames that have arrived in time to `deliver(station, frame)`.
  template <class Deliver>
  void poll(Picoseconds now, Capture* capture, const Deliver& deliver) {
    for (size_t i = 0; i < stations_.size(); i++) {
      for (Frame frame; stations_[i].up.pop(frame, now);) {
        // A switch and a network card drop these.
        if (!strip_fcs(frame)) stations_[i].fcs_errors++;
        else if (port_) port_->push(with_fcs(std::move(frame)), now);
        else arrive(i, frame, now, capture, deliver);
      }
    }
    for (Frame frame; port_ && port_->pop(frame, now);) {
      if (!strip_fcs(frame)) port_fcs_errors_++;
      else arrive(station_of(frame), frame, now, capture, deliver);
    }
  }

  bool empty() const { return !port_ || port_->empty(); }
  Json to_json() const {
    Json out = fadelink::to_json(port_->counters());
    out["fcs_errors"] = port_fcs_errors_;
    return out;
  }
  bool is_switched() const { return port_.has_value(); }

 private:
  size_t station_of(const Frame& frame) const {
    for (size_t i = 0; i < stations_.size(); i++)
      if (std::equal(stations_[i].mac.begin(), stations_[i].mac.end(), frame.begin() + 6)) return i;
    throw std::logic_error("switch: a frame from no board");
  }
  template <class Deliver>
  void arrive(size_t station, const Frame& frame, Picoseconds now, Capture* capture, const Deliver& deliver) {
    if (capture) capture->write(frame, now);
    deliver(station, frame);
  }

  std::vector<Station>& stations_;
  std::optional<Link> port_;
  uint64_t port_fcs_errors_ = 0;
};

void advance(Station& s, Picoseconds until) {
  s.board->run(until, [&s](Frame frame, Picoseconds now) { s.up.push(std::move(frame), now); });
  for (Frame frame; s.down.pop(frame, until);) s.board->send(std::move(frame));
}

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
  settings.warmup = o.warmup;
  settings.commands = o.commands;
  settings.first_packet = o.first_packet;
  settings.command_timeout += static_cast<Picoseconds>(4 * o.rtt * kMicrosecond);
  return std::make_unique<IdealReceiver>(settings, output);
}

int run_virtual(const Options& o) {
  constexpr Picoseconds kStep = 64'000;  // how exactly frames cross between board and receiver
  std::vector<Station> stations = make_stations(o);
  std::unique_ptr<Capture> capture;
  if (!o.pcap.empty()) capture = std::make_unique<Capture>(o.pcap);
  const auto wall = Clock::now();

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
  bool all_done = false;
  while (!all_done && now < limit && !interrupted) {
    if (share_from > 0 && now < share_from && now + kStep >= share_from)
      for (size_t i = 0; i < stations.size(); i++) before[i] = receivers[i]->result().packets;
    now += kStep;
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
    uplink.poll(now, capture.get(), [&](size_t i, const Frame& frame) { receivers[i]->receive(frame, now); });
  }

  const double seconds = std::chrono::duration<double>(Clock::now() - wall).count();
  Json out{{"protocol", o.protocol}, {"phy", o.phy}, {"window", o.window}, {"rtt_us", o.rtt},
           {"simulated_us", now / kMicrosecond}, {"wall_seconds", seconds}};
  if (uplink.is_switched()) out["switch"] = uplink.to_json();
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
  return good ? 0 : 1;
}

// Two boards on one cable.
int run_pair(const Options& o) {
  PtpPair pair;
  pair.board.protocol = o.protocol;
  pair.board.phy = o.phy;
  pair.board.ip = o.ip;
  pair.board.wave = o.wave;
  pair.to_slave.delay = pair.to_master.delay = static_cast<Picoseconds>(o.rtt / 2 * kMicrosecond);
  for (const auto& text : o.link) {
    pair.to_slave.parse(text);
    pair.to_master.parse(text);
  }
  for (const auto& text : o.down) pair.to_slave.parse(text);
  for (const auto& text : o.up) pair.to_master.parse(text);
  pair.slave_ppm = o.slave_ppm;
  pair.settle_ms = o.settle_ms;
  pair.limit_ms = o.limit_ms;
  pair.seed = o.seed;
  pair.capture = o.pcap;
  const Json out = run_ptp_pair(pair);
  std::cout << out.dump(1) << "\n";
  return out["locked"] ? 0 : 1;
}

void show_status(const std::vector<Station>& stations, Picoseconds simulated, double wall) {
  std::cerr << "\r\033[K" << static_cast<double>(simulated) * 1e-9 << " ms simulated in " << wall << " s";
  for (const auto& s : stations) {
    const BoardStatus b = s.board->status();
    std::cerr << " | " << to_string(s.mac).substr(9) << (b.running ? " running" : " idle") << ", sent " << b.sent
              << ", again " << b.retransmitted << ", delay " << b.delay;
  }
  std::cerr << std::flush;
}

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

}  // namespace
}  // namespace fadelink

int main(int argc, char** argv) {
  using namespace fadelink;
  Options o;
  CLI::App app{"Simulated boards: the RTL, compiled by Verilator, behind a link model."};
  app.add_option("--iface", o.iface, "network interface to attach to: a veth end or a TAP");
  app.add_flag("--create-tap", o.create_tap, "make a TAP of this name if the interface does not exist");
  app.add_flag("--packet-socket", o.packet_socket, "use a TAP from its network side: a virtual machine has the other");
  app.add_flag("--virtual", o.virtual_time, "no network: an ideal receiver in simulated time");
  app.add_option("--feb", o.febs, "MAC address of a board; repeat for several");
  app.add_option("--boards", o.boards, "number of boards, from 02:fa:de:00:00:01")->check(CLI::Range(1, 64));
  app.add_option("--protocol", o.protocol, "link core; fadc: a crate of FADC modules over TCP")->check(CLI::IsMember({"fade10g", "fade1", "tcp", "udp", "fadc"}));
  app.add_option("--phy", o.phy, "interface of the MAC: xgmii, of FADE v1 gmii")->check(CLI::IsMember({"gmii", "xgmii"}));
  app.add_flag("--paper-rule", o.paper_rule, "the paper's rule of congestion control, not the fair one");
  app.add_option("--switch", o.switch_port, "port of a switch that all boards share, as rate=1000,queue=65536");
  app.add_flag("--random", o.source.random, "source: random words, not a counter");
  app.add_option("--source-seed", o.source.seed, "source: seed of the random words");
  app.add_option("--words", o.source.limit, "source: words after which it is silent, 0: never");
  app.add_flag("--crate", o.source.crate,
               "FADE-10G: the source is a crate of FADC modules, --words windows of --gap ticks, pulses by --source-seed");
  app.add_option("--gap", o.source.gap, "source: idle clocks after each word");
  app.add_option("--window", o.window, "buffer in packets")->check(CLI::IsMember({16, 32, 64}));
  app.add_option("--link", o.link, "link settings of both directions, as loss=0.01,delay=10us");
  app.add_option("--up", o.up, "link settings from the board to the computer");
  app.add_option("--down", o.down, "link settings from the computer to the board");
  app.add_option("--seed", o.seed, "seed of the link model");
  app.add_option("--user-mhz", o.user_mhz, "clock of the user side")->check(CLI::Range(1.0, 1000.0));
  app.add_option("--line-mhz", o.line_mhz, "clock of the MAC; 12.5 for 100 Mb/s on GMII; one for each board, or for all")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 1000.0));
  app.add_option("--tx-ppm", o.tx_ppm, "error of the transmit clock")->check(CLI::Range(-10000.0, 10000.0));
  app.add_option("--rx-ppm", o.rx_ppm, "error of the receive clock")->check(CLI::Range(-10000.0, 10000.0));
  app.add_option("--spread-ppm", o.spread_ppm, "error of each board's clocks, at most, drawn by the seed")
      ->check(CLI::Range(0.0, 10000.0));
  app.add_option("--spread-us", o.spread_us, "--virtual: boards start within this time, drawn by the seed")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--first-packet", o.first_packet, "number of the first packet, to test its wrap");
  app.add_option("--first-sequence", o.first_sequence, "first frame sequence number, to test its wrap");
  app.add_option("--ip", o.address, "TCP, UDP, FADC: IPv4 address of the first board; the next ones count up");
  app.add_option("--prefix", o.prefix, "TCP, UDP, FADC: length of the network's prefix")->check(CLI::Range(0, 32));
  app.add_option("--gateway", o.gateway, "TCP, UDP, FADC: IPv4 address of the gateway to other networks");
  app.add_option("--peer", o.peer_ip, "TCP, UDP, FADC: IPv4 address of the receiver");
  app.add_option("--port", o.ip.peer_port, "TCP, UDP, FADC: port of the receiver")->check(CLI::Range(1, 65535));
  app.add_option("--streams", o.ip.streams, "TCP: connections of each board")->check(CLI::Range(1, 4));
  app.add_option("--receive-window", o.receive_window, "TCP, --virtual: window of the receiver in bytes")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--block", o.source.block, "TCP, UDP: words of a block of the source, 0: none");
  app.add_flag("--push", o.ip.push, "TCP: each block ends its segment and leaves at once");
  app.add_option("--mtu", o.ip.mtu, "TCP: largest IP packet that a board sends")->check(CLI::Range(576, 9000));
  app.add_option("--payload", o.ip.payload, "UDP: bytes of a datagram of the stream, a multiple of 4")->check(CLI::Range(16, 8972));
  app.add_flag("--checksum", o.ip.checksum, "UDP: datagrams of the stream have a checksum");
  app.add_flag("--stopped", o.ip.stopped, "UDP: the stream waits for the slow control");
  app.add_option("--ptp", o.ip.ptp_role, "UDP: role of PTP, 0 off, 1 slave, 2 master")->check(CLI::Range(0, 2));
  app.add_flag("--ptp-pair", o.ptp_pair, "UDP, --virtual: a PTP master and a slave on one cable; --rtt is the cable's");
  app.add_option("--slave-ppm", o.slave_ppm, "--ptp-pair: error of the slave's oscillator")->check(CLI::Range(-1000.0, 1000.0));
  app.add_option("--settle-ms", o.settle_ms, "--ptp-pair: time before the offset is measured")->check(CLI::NonNegativeNumber);
  app.add_option("--save", o.save, "TCP, FADC, --virtual: files of the streams' bytes: this, board and port");
  app.add_option("--source-id", o.fadc.source_id, "FADC: source of the first board's first link; boards count in steps of 256");
  app.add_option("--window-ns", o.fadc.window_ns, "FADC: length of a window in ns, a multiple of 4")->check(CLI::Range(32, 524288));
  app.add_option("--windows", o.fadc.windows, "FADC: windows after which a board is silent, 0: never");
  app.add_option("--first-window", o.fadc.first_window, "FADC: number of the first window");
  app.add_option("--begin", o.fadc.begin, "FADC: time of window 0 in seconds since 1970");
  app.add_option("--keepalive", o.fadc.keepalive, "FADC: empty windows in a row that are not sent")->check(CLI::Range(0, 0xFFFFFF));
  app.add_option("--modules", o.fadc.modules, "FADC: mask of the modules that are read out");
  app.add_option("--pulse-seed", o.fadc.seed, "FADC: seed of the first board's pulses and noise; boards count up");
  app.add_option("--pulse-rate", o.fadc.rate, "FADC: pulses a second in each channel")->check(CLI::Range(0.0, 250e6));
  app.add_option("--burst-rate", o.fadc.burst_rate, "FADC: the same in bursts")->check(CLI::Range(0.0, 250e6));
  app.add_option("--burst-every", o.fadc.burst_every_us, "FADC: us from burst to burst, 0: none")->check(CLI::Range(0.0, 1e7));
  app.add_option("--burst", o.fadc.burst_us, "FADC: us of a burst")->check(CLI::Range(0.0, 1e7));
  app.add_option("--noise", o.fadc.noise, "FADC: noise, in units of 0.57 counts")->check(CLI::Range(0, 15));
  app.add_option("--pcap", o.pcap, "capture of both directions");
  app.add_option("--wave", o.wave, "FST wave of the first board");
  app.add_option("--duration", o.duration, "seconds to run, 0: until interrupted")->check(CLI::NonNegativeNumber);
  app.add_flag("--status", o.status, "live status line even if standard error is no terminal");
  app.add_flag("--json", o.json, "summary as JSON");
  app.add_option("--rtt", o.rtt, "round trip of the link in us")->check(CLI::NonNegativeNumber);
  app.add_option("--packets", o.packets, "--virtual: packets before STOP")->check(CLI::PositiveNumber);
  app.add_option("--warmup", o.warmup, "--virtual: packets before the measurement");
  app.add_option("--share-from-ms", o.share_from_ms,
                 "--virtual: measure each board's share of the link from this time to --limit-ms, without STOP")
      ->check(CLI::PositiveNumber);
  app.add_option("--limit-ms", o.limit_ms, "--virtual: longest simulated time")->check(CLI::PositiveNumber);
  app.add_flag("--commands", o.commands, "--virtual: a user command after each response");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    return 2;
  }
  try {
    finish(o);
    if (o.ip.payload % 4 != 0) throw std::invalid_argument("--payload " + std::to_string(o.ip.payload) + ": expected a multiple of 4");
    if (o.ptp_pair && !(o.virtual_time && o.protocol == "udp"))
      throw std::invalid_argument("--ptp-pair: expected --virtual --protocol udp");
    if (o.ptp_pair && o.settle_ms >= o.limit_ms)
      throw std::invalid_argument("--settle-ms " + std::to_string(o.settle_ms) + ": expected less than --limit-ms");
    if (o.virtual_time && !o.ptp_pair && (o.protocol == "tcp" || o.protocol == "udp") && o.share_from_ms == 0 && o.source.limit == 0)
      throw std::invalid_argument("--virtual --protocol " + o.protocol + ": expected --words or --share-from-ms, else it never ends");
    if (o.fadc.window_ns % 4 != 0) throw std::invalid_argument("--window-ns " + std::to_string(o.fadc.window_ns) + ": expected a multiple of 4");
    if (o.virtual_time && o.protocol == "fadc" && o.share_from_ms == 0 && o.fadc.windows == 0)
      throw std::invalid_argument("--virtual --protocol fadc: expected --windows or --share-from-ms, else it never ends");
    if (o.virtual_time == !o.iface.empty())
      throw std::invalid_argument("expected either --iface NAME or --virtual");
    if (o.phy.empty()) o.phy = o.protocol == "fade1" ? "gmii" : "xgmii";
    if (o.share_from_ms >= o.limit_ms)
      throw std::invalid_argument("--share-from-ms " + std::to_string(o.share_from_ms) + ": expected less than --limit-ms");
    if (o.virtual_time && o.warmup >= o.packets)
      throw std::invalid_argument("--warmup " + std::to_string(o.warmup) + ": expected less than --packets");
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = interrupted + 1; };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    if (o.ptp_pair) return run_pair(o);
    return o.virtual_time ? run_virtual(o) : run_interface(o);
  } catch (const std::invalid_argument& e) {
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    return 1;
  }
}
