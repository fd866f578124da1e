// C interface to one board, for tests: frames in and out in simulated time, no link and no network.
#include <cstring>
#include <deque>

#include "board.hpp"

namespace {

struct Handle {
  std::unique_ptr<fadelink::Board> board;
  std::deque<std::pair<fadelink::Frame, fadelink::Picoseconds>> frames;
};

}  // namespace

extern "C" {

// Clock periods in ps, 0 for the nominal one; limit of the source in words, 0 for none. Returns null where the settings are not possible.
void* fadelink_board_new(const char* protocol, const char* phy, unsigned window, const uint8_t* mac, uint32_t first_packet,
                         uint16_t first_sequence, uint64_t user_period, uint64_t user_phase, uint64_t tx_period,
                         uint64_t rx_period, uint32_t limit, int paper_rule) try {
  fadelink::BoardSettings s;
  s.protocol = protocol;
  s.source.limit = limit;
  s.paper_rule = paper_rule != 0;
  s.phy = phy;
  s.window = window;
  std::memcpy(s.mac.data(), mac, s.mac.size());
  s.first_packet = first_packet;
  s.first_sequence = first_sequence;
  s.user = {user_period, user_phase};
  s.tx.period = tx_period;
  s.rx.period = rx_period;
  return new Handle{fadelink::Board::create(s), {}};
} catch (const std::exception&) {
  return nullptr;
}

// The TCP sender: first_sequence in units of twice the buffer; limit of each source and its blocks, which are pushed, in words; ecn:
// switches may mark its data; sack: the peer may tell what it misses.
void* fadelink_tcp_board_new(const char* phy, const uint8_t* mac, unsigned streams, unsigned mtu, uint32_t first_sequence,
                             uint32_t limit, unsigned gap, unsigned block, int ecn, int sack) try {
  fadelink::BoardSettings s;
  s.protocol = "tcp";
  s.phy = phy;
  std::memcpy(s.mac.data(), mac, s.mac.size());
  s.source.limit = limit;
  s.source.gap = static_cast<uint16_t>(gap);
  s.source.block = static_cast<uint16_t>(block);
  s.ip.push = block != 0;
  s.ip.ecn = ecn != 0;
  s.ip.sack = sack != 0;
  s.ip.streams = static_cast<uint8_t>(streams);
  s.ip.mtu = static_cast<uint16_t>(mtu);
  s.first_sequence = first_sequence;
  return new Handle{fadelink::Board::create(s), {}};
} catch (const std::exception&) {
  return nullptr;
}

// The UDP/IP stack: limit of the source in words, its blocks too.
void* fadelink_udp_board_new(const char* phy, const uint8_t* mac, unsigned payload, int checksum, int stopped, uint32_t limit,
                             unsigned gap, unsigned block, uint64_t tx_period, uint64_t rx_period, unsigned ptp_role) try {
  fadelink::BoardSettings s;
  s.protocol = "udp";
  s.phy = phy;
  std::memcpy(s.mac.data(), mac, s.mac.size());
  s.source.limit = limit;
  s.source.gap = static_cast<uint16_t>(gap);
  s.source.block = static_cast<uint16_t>(block);
  s.ptp_role = ptp_role;
  s.ip.payload = static_cast<uint16_t>(payload);
  s.ip.checksum = checksum != 0;
  s.ip.stopped = stopped != 0;
  s.tx.period = tx_period;
  s.rx.period = rx_period;
  return new Handle{fadelink::Board::create(s), {}};
} catch (const std::exception&) {
  return nullptr;
}

// TCP: sends what was taken, and closes the connections.
void fadelink_board_close(void* handle) { static_cast<Handle*>(handle)->board->close(); }

// Name and value of a further counter; null behind the last one.
const char* fadelink_board_counter(const void* handle, size_t index, uint32_t* value) {
  const auto s = static_cast<const Handle*>(handle)->board->status();
  if (index >= s.more.size()) return nullptr;
  *value = s.more[index].second;
  return s.more[index].first;
}

void fadelink_board_free(void* handle) { delete static_cast<Handle*>(handle); }

// Queues bytes for the receive pins: all that stands between the start delimiter and the gap.
void fadelink_board_send(void* handle, const uint8_t* bytes, size_t length) {
  static_cast<Handle*>(handle)->board->send(fadelink::Frame(bytes, bytes + length));
}

// Simulates up to the time `until` (ps) or until a frame has left the board.
void fadelink_board_run(void* handle, uint64_t from, uint64_t until) {
  constexpr uint64_t kStep = 64'000;
  auto* h = static_cast<Handle*>(handle);
  for (uint64_t now = from; now < until && h->frames.empty();) {
    now = now + kStep < until ? now + kStep : until;
    h->board->run(now, [h](fadelink::Frame frame, fadelink::Picoseconds at) { h->frames.emplace_back(std::move(frame), at); });
  }
}

// Takes the oldest frame that left the board, with its frame check sequence. Returns its length, 0 if
// there is none; `at` is the time of its last byte.
size_t fadelink_board_receive(void* handle, uint8_t* out, size_t size, uint64_t* at) {
  auto* h = static_cast<Handle*>(handle);
  if (h->frames.empty()) return 0;
  const auto& [frame, time] = h->frames.front();
  const size_t length = frame.size();
  std::memcpy(out, frame.data(), length < size ? length : size);
  *at = time;
  h->frames.pop_front();
  return length;
}

// The board's own clock, ns.
int64_t fadelink_board_time(const void* handle) { return static_cast<const Handle*>(handle)->board->ptp().time; }

// Running, frames sent, retransmitted, early retransmissions, delay.
void fadelink_board_status(const void* handle, uint32_t status[5]) {
  const auto s = static_cast<const Handle*>(handle)->board->status();
  const uint32_t values[] = {s.running, s.sent, s.retransmitted, s.early, s.delay};
  std::copy(std::begin(values), std::end(values), status);
}
}
