#include "options.hpp"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "hardware.hpp"
#include "link.hpp"
#include "manual.hpp"

namespace fadelink {
namespace {

constexpr uint64_t kWarmup = 200;
constexpr double kSettleMs = 50;

// A number as a user writes it.
std::string shown(double number) {
  std::ostringstream text;
  text << std::setprecision(15) << number;
  return text.str();
}

// An IPv4 address; throws with the name of the option.
uint32_t parse_ip(const char* option, const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1)
    throw std::invalid_argument(std::string(option) + " " + text + ": expected an IPv4 address, as 10.9.0.2");
  return ntohl(address.s_addr);
}

// A number from a lower limit on; `what` it is, for the message. Those of CLI11 tell the largest of all numbers as an upper limit.
CLI::Validator from(const std::string& shown, const std::string& what, bool (*fits)(double)) {
  const auto refuse = [what, fits](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && fits(value)) return std::string();
    return "value " + text + ": expected " + what;
  };
  return CLI::Validator(refuse, shown);
}
const CLI::Validator kNotNegative = from("0 or more", "a number of at least 0", [](double value) { return value >= 0; });
const CLI::Validator kPositive = from("above 0", "a number above 0", [](double value) { return value > 0; });
const CLI::Validator kWhole = from("", "a whole number of at least 0", [](double value) { return value >= 0 && value == std::floor(value); });
const CLI::Validator kCount = from("1 or more", "a whole number of at least 1", [](double value) { return value >= 1 && value == std::floor(value); });

// What several options say together.
void finish(Options& o) {
  if (!o.address.empty()) o.ip.address = parse_ip("--ip", o.address);
  if (!o.peer_ip.empty()) o.ip.peer = parse_ip("--peer", o.peer_ip);
  if (!o.gateway.empty()) o.ip.gateway = parse_ip("--gateway", o.gateway);
  o.ip.mask = o.prefix == 0 ? 0 : ~uint32_t{0} << (32 - o.prefix);
  if (!o.board.empty()) {
    o.phy = hardware_phy(o.board);
    if (o.speed == 0) o.speed = o.phy == "rgmii" ? 1000 : 100;
  }
  if (!o.settle_ms) o.settle_ms = std::min(kSettleMs, o.limit_ms / 2);
  if (!o.warmup) o.warmup = std::min<uint64_t>(kWarmup, o.packets / 10);
  if (o.phy.empty()) o.phy = o.protocol == "fade1" ? "gmii" : "xgmii";
}

void check(const Options& o) {
  if (o.ip.payload % 4 != 0) throw std::invalid_argument("--payload " + std::to_string(o.ip.payload) + ": expected a multiple of 4");
  if (o.ptp_pair && !(o.virtual_time && o.protocol == "udp"))
    throw std::invalid_argument("--ptp-pair: expected --virtual --protocol udp");
  if (o.speed != 0 && o.board.empty()) throw std::invalid_argument("--speed: expected --board, whose PHY has this speed");
  if (o.speed == 1000 && o.phy == "rmii") throw std::invalid_argument("--speed 1000 with --board " + o.board + ": expected 10 or 100, its PHY has no more");
  const bool has_ptp = o.protocol == "udp" || has_crate(o);
  if (!has_ptp && std::any_of(o.ptp.begin(), o.ptp.end(), [](unsigned role) { return role != 0; }))
    throw std::invalid_argument("--ptp with --protocol " + o.protocol + ": expected udp, fadc, or --crate");
  if (o.test_pulse_us > 0 && !(o.virtual_time && has_crate(o)))
    throw std::invalid_argument("--test-pulse-us: expected --virtual, and --protocol fadc or --crate");
  if (o.ptp_pair && *o.settle_ms >= o.limit_ms)
    throw std::invalid_argument("--settle-ms " + shown(*o.settle_ms) + ": expected less than --limit-ms " + shown(o.limit_ms));
  if (o.virtual_time && !o.ptp_pair && (o.protocol == "tcp" || o.protocol == "udp") && o.share_from_ms == 0 && o.source.limit == 0)
    throw std::invalid_argument("--virtual --protocol " + o.protocol + ": expected --words or --share-from-ms, else it never ends");
  if (o.fadc.window_ns % 4 != 0) throw std::invalid_argument("--window-ns " + std::to_string(o.fadc.window_ns) + ": expected a multiple of 4");
  if (!o.record.empty() && streams(o) > 1) throw std::invalid_argument("--record: expected one stream of each board");
  if (o.virtual_time && o.protocol == "fadc" && o.share_from_ms == 0 && o.fadc.windows == 0)
    throw std::invalid_argument("--virtual --protocol fadc: expected --windows or --share-from-ms, else it never ends");
  if (o.virtual_time == !o.iface.empty())
    throw std::invalid_argument("expected either --iface NAME or --virtual");
  if (o.share_from_ms >= o.limit_ms)
    throw std::invalid_argument("--share-from-ms " + shown(o.share_from_ms) + ": expected less than --limit-ms " + shown(o.limit_ms));
  if (o.virtual_time && *o.warmup >= o.packets)
    throw std::invalid_argument("--warmup " + std::to_string(*o.warmup) + ": expected less than --packets " + std::to_string(o.packets));
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("--iface", o.iface, "network interface to attach to: a veth end or a TAP");
  app.add_flag("--create-tap", o.create_tap, "make a TAP of this name if the interface does not exist");
  app.add_flag("--packet-socket", o.packet_socket, "use a TAP from its network side: a virtual machine has the other");
  app.add_flag("--virtual", o.virtual_time, "no network: an ideal receiver, in simulated time");
  app.add_option("--feb", o.febs, "MAC address of a board; repeat for several");
  app.add_option("--boards", o.boards, "number of boards, from 02:fa:de:00:00:01")->check(CLI::Range(1, 64));
  app.add_option("--protocol", o.protocol, "protocol of the boards; fadc: crates of FADC modules over TCP")->check(CLI::IsMember({"fade10g", "fade1", "tcp", "udp", "fadc"}));
  app.add_option("--phy", o.phy, "interface of the MAC; default: xgmii, for FADE v1 gmii")->check(CLI::IsMember({"gmii", "xgmii"}));
  app.add_option("--board", o.board, "a real board, from pin to pin (docs/boards.md)")
      ->check(CLI::IsMember(hardware_names()));
  app.add_option("--speed", o.speed, "--board: Mb/s that its PHY negotiates; default: its highest")->check(CLI::IsMember({10, 100, 1000}));
  app.add_flag("--paper-rule", o.paper_rule, "use the paper's rule of congestion control instead of the fair one");
  app.add_option("--switch", o.switch_port, "port of a switch that all boards share: settings as below, as in rate=1000,queue=65536");
  app.add_flag("--random", o.source.random, "source: random words instead of a counter");
  app.add_option("--source-seed", o.source.seed, "source: seed of the random words");
  app.add_option("--words", o.source.limit, "source: number of words, 0: no limit");
  app.add_flag("--crate", o.source.crate,
               "FADE-10G: the source is a small crate of FADC modules; --words: windows, --gap: ticks of a window, --source-seed: seed of pulses");
  app.add_flag("--small", o.fadc.small, "FADC: few channels, for a faster simulation");
  app.add_option("--test-pulse-us", o.test_pulse_us, "FADC, --crate, --virtual: period in us of a pulse in all channels of all boards")
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--gap", o.source.gap, "source: idle clocks after each word");
  app.add_option("--window", o.window, "buffer in packets")->check(CLI::IsMember({16, 32, 64}));
  app.add_option("--link", o.link, "settings of the link in both directions, as below: loss=0.01,delay=10us");
  app.add_option("--up", o.up, "settings of the link from board to computer");
  app.add_option("--down", o.down, "settings of the link from computer to board");
  app.add_option("--seed", o.seed, "seed of the link model");
  app.add_option("--user-mhz", o.user_mhz, "user clock in MHz")->check(CLI::Range(1.0, 1000.0));
  app.add_option("--line-mhz", o.line_mhz, "clock of the MAC in MHz; 12.5 for 100 Mb/s on GMII; one for all boards or one for each")
      ->delimiter(',')
      ->check(CLI::Range(1.0, 1000.0));
  app.add_option("--tx-ppm", o.tx_ppm, "error of the transmit clock in ppm")->check(CLI::Range(-10000.0, 10000.0));
  app.add_option("--rx-ppm", o.rx_ppm, "error of the receive clock in ppm")->check(CLI::Range(-10000.0, 10000.0));
  app.add_option("--spread-ppm", o.spread_ppm, "largest error of the clocks of a board in ppm; the seed chooses")
      ->check(CLI::Range(0.0, 10000.0));
  app.add_option("--spread-us", o.spread_us, "--virtual: boards start within this time in us; the seed chooses")
      ->check(kNotNegative);
  app.add_option("--first-packet", o.first_packet, "number of the first packet, for tests");
  app.add_option("--first-sequence", o.first_sequence, "first frame sequence number, for tests");
  app.add_option("--ip", o.address, "TCP, UDP, FADC: IPv4 address of the first board; the next boards count up");
  app.add_option("--prefix", o.prefix, "TCP, UDP, FADC: prefix length of the network")->check(CLI::Range(0, 32));
  app.add_option("--gateway", o.gateway, "TCP, UDP, FADC: IPv4 address of the gateway to other networks");
  app.add_option("--peer", o.peer_ip, "TCP, UDP, FADC: IPv4 address of the receiver");
  app.add_option("--port", o.ip.peer_port, "TCP, UDP, FADC: port of the receiver")->check(CLI::Range(1, 65535));
  app.add_option("--streams", o.ip.streams, "TCP: connections of each board")->check(CLI::Range(1, 4));
  app.add_option("--receive-window", o.receive_window, "TCP, --virtual: receive window in bytes")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--block", o.source.block, "TCP, UDP: source: words of a block, 0: no blocks");
  app.add_flag("--push", o.ip.push, "TCP: send each block at once, in its own segment");
  app.add_flag("--ecn", o.ip.ecn, "TCP: allow switches to mark data instead of dropping it (RFC 3168)");
  app.add_flag("--sack", o.ip.sack, "TCP: enable selective acknowledgements (RFC 2018)");
  app.add_option("--mtu", o.ip.mtu, "TCP: MTU in bytes")->check(CLI::Range(576, 9000));
  app.add_option("--payload", o.ip.payload, "UDP: payload of a datagram in bytes, a multiple of 4")->check(CLI::Range(16, 8972));
  app.add_flag("--checksum", o.ip.checksum, "UDP: add a checksum to datagrams of the stream");
  app.add_flag("--stopped", o.ip.stopped, "UDP: the stream waits until slow control starts it");
  app.add_option("--ptp", o.ptp, "UDP, FADC, --crate: PTP role: 0 off, 1 slave, 2 master, 3 by the best master clock algorithm; one for all boards or one for each")
      ->delimiter(',')
      ->check(CLI::Range(0, 3));
  app.add_flag("--ptp-pair", o.ptp_pair, "UDP, --virtual: a PTP master and a slave on a cable with this --rtt");
  app.add_option("--slave-ppm", o.slave_ppm, "--ptp-pair: error of the slave's oscillator in ppm")->check(CLI::Range(-1000.0, 1000.0));
  app.add_option("--settle-ms", o.settle_ms, "--ptp-pair: time in ms before the offset is measured; default: half of --limit-ms, at most 50")->check(kNotNegative);
  app.add_option("--save", o.save, "TCP, FADC, --crate, --virtual: write the bytes of each stream to a file with this prefix, board and port");
  app.add_option("--source-id", o.fadc.source_id, "FADC: source identifier of the first link; boards count in steps of 256");
  app.add_option("--window-ns", o.fadc.window_ns, "FADC: length of a window in ns, a multiple of 4")->check(CLI::Range(32, 524288));
  app.add_option("--windows", o.fadc.windows, "FADC: number of windows, 0: no limit");
  app.add_option("--first-window", o.fadc.first_window, "FADC: number of the first window");
  app.add_option("--begin", o.fadc.begin, "FADC: begin of window 0 in seconds since 1970");
  app.add_option("--keepalive", o.fadc.keepalive, "FADC: number of empty windows in a row that are not sent")->check(CLI::Range(0, 0xFFFFFF));
  app.add_option("--modules", o.fadc.modules, "FADC: mask of the modules that are read out");
  app.add_option("--pulse-seed", o.fadc.seed, "FADC: seed of pulses and noise of the first board; boards count up");
  app.add_option("--pulse-rate", o.fadc.rate, "FADC: pulses per second in each channel")->check(CLI::Range(0.0, 250e6));
  app.add_option("--burst-rate", o.fadc.burst_rate, "FADC: pulses per second in bursts")->check(CLI::Range(0.0, 250e6));
  app.add_option("--burst-every", o.fadc.burst_every_us, "FADC: time between bursts in us, 0: no bursts")->check(CLI::Range(0.0, 1e7));
  app.add_option("--burst", o.fadc.burst_us, "FADC: length of a burst in us")->check(CLI::Range(0.0, 1e7));
  app.add_option("--noise", o.fadc.noise, "FADC: noise, in units of 0.57 counts")->check(CLI::Range(0, 15));
  app.add_option("--pcap", o.pcap, "write a capture of both directions to this file");
  app.add_option("--wave", o.wave, "write an FST wave of the first board to this file");
  app.add_option("--record", o.record,
                 "write the words that a core takes from its source to files PREFIX.BOARD.RUN, one for each transmission; with --random each has other words");
  app.add_option("--duration", o.duration, "seconds to run, 0: until interrupted")->check(kNotNegative);
  app.add_flag("--status", o.status, "show the status line also with --json");
  app.add_flag("--json", o.json, "print the summary as JSON");
  app.add_option("--rtt", o.rtt, "round trip of the link in us")->check(kNotNegative);
  app.add_option("--packets", o.packets, "--virtual: packets before STOP; default: 2000")->check(kCount);
  app.add_option("--warmup", o.warmup, "--virtual: packets before the measurement; default: a tenth of --packets, at most 200");
  app.add_option("--share-from-ms", o.share_from_ms,
                 "--virtual: measure each board's share of the link from this time to --limit-ms, without STOP")
      ->check(kPositive);
  app.add_option("--limit-ms", o.limit_ms, "--virtual: limit of simulated time in ms; default: 10000")->check(kPositive);
  app.add_flag("--commands", o.commands, "--virtual: send a user command after each response");
}

// Options that a board from pin to pin has no pin for.
void check_real_board(const CLI::App& app, const Options& o) {
  if (o.board.empty()) return;
  for (const char* name : {"--virtual", "--feb", "--boards", "--phy", "--paper-rule", "--random", "--source-seed", "--words", "--crate", "--small",
                           "--gap", "--window", "--user-mhz", "--line-mhz", "--tx-ppm", "--rx-ppm", "--spread-ppm", "--first-packet",
                           "--first-sequence", "--ip", "--prefix", "--gateway", "--peer", "--port", "--streams", "--block", "--push", "--ecn",
                           "--sack", "--mtu", "--payload", "--checksum", "--stopped", "--ptp", "--record"})
    if (app.count(name) > 0)
      throw std::invalid_argument(std::string(name) + " with --board " + o.board +
                                  ": expected no such option, because a real board has constants there (docs/boards.md)");
}

// The link settings, as the help has them.
std::string link_settings() {
  std::ostringstream text;
  text << "Settings of --link, --up, --down and --switch, as NAME=VALUE,NAME=VALUE:\n" << std::left;
  for (const auto& s : LinkSettings::descriptions())
    text << "  " << std::setw(10) << s.name << "  " << s.meaning << " (" << s.unit << ", default " << s.fallback << ")\n";
  return text.str();
}

}  // namespace

bool has_crate(const Options& o) { return o.protocol == "fadc" || o.source.crate; }

bool is_tcp(const Options& o) { return o.protocol == "tcp" || o.protocol == "fadc"; }

unsigned streams(const Options& o) { return o.protocol != "fadc" ? o.ip.streams : o.phy == "gmii" ? 1 : 4; }

Parsed parse_options(int argc, char** argv) {
  Parsed parsed;
  CLI::App app{std::string("Example:\n") + kExample + "\n" + kPurpose};
  app.footer(link_settings());
  add_options(app, parsed.options);
  // CLI11 takes -1 for the largest of these numbers.
  for (CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_type_name().rfind("UINT", 0) == 0; })) option->check(kWhole);
  bool manual = false;
  // For packages.
  app.add_flag("--man", manual)->group("");
  try {
    app.parse(argc, argv);
    if (manual) {
      print_manual(app);
      parsed.exit = 0;
      return parsed;
    }
    check_real_board(app, parsed.options);
    finish(parsed.options);
    check(parsed.options);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      parsed.exit = app.exit(e);
    } else {
      std::cerr << "fadelink-sim: " << e.what() << "\n";
      parsed.exit = 2;
    }
  } catch (const std::invalid_argument& e) {
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    parsed.exit = 2;
  }
  return parsed;
}

}  // namespace fadelink
