// The boards of boards.def that are built.
#include "hardware.hpp"
#include "models.hpp"
#include "verilated_board.hpp"

namespace fadelink {
namespace {

// As example_udp: the core's, then the MAC's.
constexpr const char* kUdpCounters[] = {
    "datagrams", "unresolved", "drop_destination", "drop_ethertype", "drop_ethernet_short", "drop_arp",
    "drop_arp_full", "drop_ip_short", "drop_ip_version", "drop_ip_checksum", "drop_ip_destination", "drop_fragment",
    "drop_ip_protocol", "drop_icmp_type", "drop_icmp_checksum", "drop_icmp_full", "drop_udp_short",
    "drop_udp_checksum", "drop_port", "drop_control_short", "drop_control_full", "ptp_offsets",
    "drop_ptp_malformed", "drop_ptp_ignored", "drop_ptp_full", "drop_mac"};

// As example_fadc: those of its link (example_tcp_link), which TCP has alone, then the crate's; at the end those of PTP.
constexpr size_t kTcpCounters = 15;
constexpr const char* kFadcCounters[] = {
    "connections", "path", "timeouts", "probes", "resets", "unacceptable", "window", "drop_port",
    "drop_destination", "drop_protocol", "drop_fragment", "drop_checksum", "drop_short", "drop_full", "drop_mac",
    "hits", "pileup", "hits_lost", "hits_late", "hits_over", "modules_timed_out", "windows_lost", "messages",
    "most_buffer_words", "windows_off_time", "ptp_offsets", "drop_ptp_malformed", "drop_ptp_ignored", "drop_ptp_full"};

struct Entry {
  const char *model, *protocol, *phy;
  unsigned window;  // 0: has none
  bool crate, small;
  std::unique_ptr<Board> (*make)(const BoardSettings&);

  bool is(const BoardSettings& s) const {
    return s.protocol == protocol && s.phy == phy && (window == 0 || s.window == window) && s.source.crate == crate && (crate || s.fadc.small == small);
  }
};

template <class Model, class Phy>
std::unique_ptr<Board> make(const BoardSettings& s) {
  return std::make_unique<VerilatedBoard<Model, Phy>>(s);
}

const std::vector<Entry> kBoards = {
#define BOARD(model, protocol, phy, window, crate, small) {#model, protocol, phy::kName, window, crate, small, make<V##model, phy>},
#include "models.def"
#undef BOARD
};

}  // namespace

std::span<const char* const> counter_names(const std::string& protocol) {
  if (protocol == "udp") return kUdpCounters;
  const std::span<const char* const> all(kFadcCounters);
  return protocol == "fadc" ? all : protocol == "tcp" ? all.first(kTcpCounters) : all.first(0);
}

std::unique_ptr<Board> Board::create(const BoardSettings& s) {
  if (!s.board.empty()) return create_hardware(s);
  std::string expected;
  for (const Entry& board : kBoards) {
    if (board.is(s)) return board.make(s);
    if (s.protocol != board.protocol || s.source.crate != board.crate || (!board.crate && s.fadc.small != board.small)) continue;
    expected += std::string(expected.empty() ? "" : ", or ") + "phy " + board.phy;
    if (board.window != 0) expected += " and window " + std::to_string(board.window);
  }
  const std::string source = s.source.crate ? " with a crate as its source" : s.fadc.small ? " with a small crate" : "";
  if (expected.empty()) throw std::invalid_argument("board: there is no " + s.protocol + source);
  throw std::invalid_argument("board: expected " + expected + " for " + s.protocol + source + ", not phy " + s.phy +
                              " and window " + std::to_string(s.window));
}

}  // namespace fadelink
