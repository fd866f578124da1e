// One simulated board with any core: settings, frames in and out, status.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frame.hpp"

namespace fadelink {

// A sample of the FADC modules each 4 ns, and SAMPLES of example_crate in a clock.
constexpr Picoseconds kSamplePeriod = 4000;
constexpr unsigned kSamples = 2;

struct ClockSettings {
  Picoseconds period = 0;  // 0: the nominal one of the interface
  Picoseconds phase = 0;
  unsigned fraction = 0;   // by which the period is longer, in 1/1024 ps
};

// Settings of the example source until a user command changes them.
struct SourceSettings {
  bool random = false;
  uint64_t seed = 0;
  uint32_t limit = 0;  // words, 0: endless
  uint16_t gap = 0;    // idle clocks after each word
  bool crate = false;  // of FADC modules, behind FADE-10G: limit in windows, gap: ticks of a window
  uint16_t block = 0;  // words, 0: none; of TCP and UDP
};

// Settings of the cores of IP protocols.
struct IpSettings {
  uint32_t address = 0x0a090002, mask = 0xffffff00, gateway = 0x0a0900fe, peer = 0x0a090001;
  uint16_t peer_port = 10000, local_port = 0xc000;
  // of TCP
  uint16_t mtu = 1500;
  uint8_t streams = 1;
  bool push = false;            // each block in segments of its own
  bool ecn = false, sack = false;
  // of UDP
  uint16_t payload = 1472;
  bool checksum = false, stopped = false;  // stopped: until the slow control starts the stream
};

// Settings of the crate of FADC modules and of the generators of their samples.
struct FadcSettings {
  uint32_t source_id = 0xC0DA0001;
  uint64_t first_window = 0;
  uint64_t begin = 1'700'000'000;  // of window 0, in seconds since 1970
  uint32_t window_ns = 65536, windows = 0, keepalive = 0;
  uint16_t modules = 0xffff;  // mask of those that are read out
  uint32_t seed = 1;
  double rate = 1e5, burst_rate = 0;  // pulses a second and channel
  double burst_every_us = 0, burst_us = 0;
  unsigned noise = 4;
  bool small = false;  // a crate of few channels
};

struct BoardSettings {
  std::string protocol = "fade10g";  // or fade1, tcp, udp, fadc
  std::string phy = "xgmii";  // or gmii
  std::string board;          // top module of a board from pin to pin, or empty: example_board
  unsigned speed = 0;         // of the PHY of such a board, in Mb/s
  unsigned window = 32;       // packets
  Mac mac{};
  uint32_t first_packet = 0;
  uint32_t first_sequence = 0;  // of FADE-10G's frames; of TCP in units of twice the buffer
  bool paper_rule = false;  // of congestion control
  SourceSettings source;
  IpSettings ip;
  FadcSettings fadc;
  unsigned ptp_role = 0;  // 0 off, 1 slave, 2 master, 3 the best clock's; of UDP and crates
  ClockSettings user, tx, rx;
  std::string wave;    // FST file, empty: none
  std::string record;  // prefix of the files with the words that are taken from the source, empty: none
};

struct BoardStatus {
  bool running = false;
  uint32_t sent = 0, retransmitted = 0, early = 0, delay = 0;
  uint32_t connections = 0;                            // open ones, of TCP
  std::vector<std::pair<const char*, uint32_t>> more;  // of IP protocols
};

// Of the clock of PTP.
struct PtpState {
  int64_t time = 0;                     // ns
  int32_t offset = 0, delay = 0, rate = 0;  // ns, ns, 2^-32 ns a clock
  bool locked = false;
};

class Board {
 public:
  // Called with each frame that leaves the MAC (with frame check sequence) at its last byte.
  using Output = std::function<void(Frame, Picoseconds)>;

  virtual ~Board() = default;
  // Simulates all clock edges before `until`.
  virtual void run(Picoseconds until, const Output& output) = 0;
  // Queues a frame, with frame check sequence, for the MAC's receive pins.
  virtual void send(Frame frame) = 0;
  // Nothing happens until a frame comes: the core is idle and the pins are silent.
  virtual bool idle() const = 0;
  virtual BoardStatus status() const = 0;
  // TCP: sends what was taken, and closes the connections.
  virtual void close() = 0;
  virtual PtpState ptp() const = 0;
  // The pin by which a crate's detector has pulses, one when it rises.
  virtual void pulse(bool level) = 0;
  virtual double line_rate() const = 0;  // bit/s

  // One of boards.def; throws std::invalid_argument if there is none for these settings.
  static std::unique_ptr<Board> create(const BoardSettings& settings);
};

}  // namespace fadelink
