// The options of the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "board.hpp"

namespace fadelink {

struct Options {
  std::string iface, pcap, wave, phy, board, protocol = "fade10g";
  std::vector<std::string> febs, link, up, down, switch_port;
  bool create_tap = false, packet_socket = false, virtual_time = false, json = false, commands = false, status = false;
  bool paper_rule = false;
  SourceSettings source;
  IpSettings ip;
  FadcSettings fadc;
  std::string address, peer_ip, gateway, save, record;
  unsigned prefix = 24;
  uint32_t receive_window = 1 << 30;
  std::vector<double> line_mhz;
  std::vector<unsigned> ptp;
  double share_from_ms = 0, slave_ppm = 0, test_pulse_us = 0;
  std::optional<double> settle_ms;  // finish() gives the default
  bool ptp_pair = false;
  unsigned boards = 1, window = 32, speed = 0;
  uint64_t seed = 1, packets = 2000;
  std::optional<uint64_t> warmup;  // finish() gives the default
  uint32_t first_packet = 0;
  uint16_t first_sequence = 0;
  double duration = 0, rtt = 0, limit_ms = 10000;
  double user_mhz = 0, tx_ppm = 0, rx_ppm = 0, spread_ppm = 0, spread_us = 0;
};

// The checked options; or the exit status, after help or an error message was printed.
struct Parsed {
  Options options;
  std::optional<int> exit;
};
Parsed parse_options(int argc, char** argv);

// True also for crates of FADC modules, which use the TCP sender.
bool is_tcp(const Options& o);
bool has_crate(const Options& o);
// Connections of each board.
unsigned streams(const Options& o);

}  // namespace fadelink
