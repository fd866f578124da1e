#include "board.hpp"

#include <algorithm>

#include "Vfadcgmii.h"
#include "Vfadcxgmii.h"
#include "Vfade1.h"
#include "Vgmii16.h"
#include "Vgmii32.h"
#include "Vgmii64.h"
#include "Vtcpgmii.h"
#include "Vtcpxgmii.h"
#include "Vudpgmii.h"
#include "Vudpxgmii.h"
#include "Vxgmii16.h"
#include "Vxgmii32.h"
#include "Vxgmii64.h"
#include "Vxgmiicrate.h"

namespace fadelink {
namespace {

// How frames pass the pins of each interface.
struct Gmii {
  static constexpr Picoseconds kPeriod = 8000;
  static constexpr Picoseconds kUserPeriod = 8000;
  static constexpr unsigned kBitsPerClock = 8;
  GmiiSender sender;
  GmiiReceiver receiver;

  template <class Model>
  void drive(Model& model) {
    const auto pins = sender.clock();
    model.gmii_rxd = pins.data;
    model.gmii_rx_dv = pins.valid;
    model.gmii_rx_er = 0;
  }
  template <class Model>
  std::optional<Frame> sample(const Model& model) {
    return receiver.clock(model.gmii_txd, model.gmii_tx_en, model.gmii_tx_er);
  }
};

struct Xgmii {
  static constexpr Picoseconds kPeriod = 6400;
  static constexpr Picoseconds kUserPeriod = 6400;
  static constexpr unsigned kBitsPerClock = 64;
  XgmiiSender sender;
  XgmiiReceiver receiver;

  template <class Model>
  void drive(Model& model) {
    const auto pins = sender.clock();
    model.xgmii_rxd = pins.data;
    model.xgmii_rxc = pins.control;
  }
  template <class Model>
  std::optional<Frame> sample(const Model& model) {
    return receiver.clock(model.xgmii_txd, model.xgmii_txc);
  }
};

// As `counters` of example_tcp.
constexpr std::array<const char*, 15> kTcpCounters = {
    "connections", "path",          "timeouts",      "probes",        "resets",     "unacceptable", "window", "drop_port",
    "drop_destination", "drop_protocol", "drop_fragment", "drop_checksum", "drop_short", "drop_full",    "drop_mac"};

// As `counters` of example_udp: the core's, then the MAC's.
constexpr std::array<const char*, 25> kUdpCounters = {
    "datagrams", "unresolved", "drop_destination", "drop_ethertype", "drop_ethernet_short", "drop_arp", "drop_arp_full",
    "drop_ip_short", "drop_ip_version", "drop_ip_checksum", "drop_ip_destination", "drop_fragment", "drop_ip_protocol",
    "drop_icmp_type", "drop_icmp_checksum", "drop_icmp_full", "drop_udp_short", "drop_udp_checksum", "drop_port",
    "drop_control_short", "drop_control_full", "ptp_offsets", "drop_ptp_malformed", "drop_ptp_ignored", "drop_mac"};

// As `counters` of example_fadc: the link's, then the crate's.
constexpr std::array<const char*, 9> kFadcCounters = {"hits", "pileup", "hits_lost", "hits_late", "hits_over",
                                                      "timeouts", "windows_lost", "messages",  "most_buffer_words"};
// A sample each 4 ns.
constexpr Picoseconds kSamplePeriod = 4000;

template <class Model, class Phy>
class VerilatedBoard : public Board {
  static constexpr bool kIsTcp = requires(Model& model) { model.mtu; };
  static constexpr bool kIsUdp = requires(Model& model) { model.payload; };
  static constexpr bool kIsFadc = requires(Model& model) { model.window_ticks; };

 public:
  explicit VerilatedBoard(const BoardSettings& s) : model_(&context_) {
    periods_ = {s.user.period ? s.user.period : kIsFadc ? kSamplePeriod : Phy::kUserPeriod, s.tx.period ? s.tx.period : Phy::kPeriod,
                s.rx.period ? s.rx.period : Phy::kPeriod};
    next_ = {periods_[kUser] + s.user.phase, periods_[kTx] + s.tx.phase, periods_[kRx] + s.rx.phase};
    if (!s.wave.empty()) {
      context_.traceEverOn(true);
      wave_ = std::make_unique<VerilatedFstC>();
      model_.trace(wave_.get(), 99);
      wave_->open(s.wave.c_str());
      if (!wave_->isOpen()) throw std::runtime_error("wave file " + s.wave + ": cannot be written");
    }
    model_.mac_address = to_u64(s.mac);
    if constexpr (kIsTcp || kIsUdp) {
      model_.ip_address = s.ip.address;
      model_.ip_mask = s.ip.mask;
      model_.ip_gateway = s.ip.gateway;
      model_.peer_ip = s.ip.peer;
      model_.peer_port = s.ip.peer_port;
      model_.local_port = s.ip.local_port;
      model_.enable = 1;
      if constexpr (!kIsFadc) model_.source_block = s.source.block;
    }
    if constexpr (kIsUdp) {
      model_.payload = s.ip.payload;
      model_.checksum = s.ip.checksum;
      model_.start = !s.ip.stopped;
      model_.ptp_role = s.ip.ptp_role;
    } else if constexpr (kIsTcp) {
      model_.mtu = s.ip.mtu;
      model_.first_sequence = s.ip.first_sequence;
      model_.push = s.ip.push;
      if constexpr (!kIsFadc) model_.streams = s.ip.streams;
    } else {
      model_.first_packet = s.first_packet;
      model_.first_sequence = s.first_sequence;
      model_.paper_rule = s.paper_rule;
    }
    if constexpr (kIsFadc) {
      set(s.fadc);
    } else {
      model_.source_random = s.source.random;
      model_.source_seed = s.source.seed;
      model_.source_limit = s.source.limit;
      model_.source_gap = s.source.gap;
    }
    model_.rst = 1;
    model_.eval();
    const Picoseconds settle = 16 * *std::max_element(periods_.begin(), periods_.end());
    run(settle, [](Frame, Picoseconds) {});
    model_.rst = 0;
    run(2 * settle, [](Frame, Picoseconds) {});
  }
  ~VerilatedBoard() override {
    model_.final();
    if (wave_) wave_->close();
  }

  void run(Picoseconds until, const Output& output) override {
    for (;;) {
      const Picoseconds now = std::min({next_[kUser], next_[kTx], next_[kRx]});
      if (now >= until) return;
      std::array<bool, 3> rise;
      bool must_fall = false;
      for (int i = 0; i < 3; i++) {
        rise[i] = next_[i] == now;
        must_fall |= rise[i] && clock(i);
      }
      // A clock that was left high falls now: together with another's edge, or before its own.
      for (int i = 0; i < 3; i++) clock(i) = 0;
      if (must_fall) model_.eval();
      if (rise[kRx]) phy_.drive(model_);
      for (int i = 0; i < 3; i++) {
        clock(i) = rise[i];
        if (rise[i]) next_[i] += periods_[i];
      }
      model_.eval();
      if (wave_) wave_->dump(now);
      if (rise[kTx]) {
        if (auto frame = phy_.sample(model_)) output(std::move(*frame), now);
        quiet_ = model_.running || has_time() ? 0 : quiet_ + 1;
      }
    }
  }

  void send(Frame frame) override {
    phy_.sender.push(std::move(frame));
    quiet_ = 0;
  }
  bool idle() const override { return quiet_ > kQuietClocks && phy_.sender.empty(); }
  BoardStatus status() const override {
    if constexpr (kIsUdp) {
      BoardStatus status{model_.running != 0, model_.counters[0], 0, 0, 0, 0, {}};
      for (size_t i = 0; i < kUdpCounters.size(); i++) status.more.emplace_back(kUdpCounters[i], model_.counters[i]);
      status.more.emplace_back("path", model_.path);
      return status;
    } else {
      BoardStatus status{model_.running != 0, model_.status_sent, model_.status_retransmitted, model_.status_early,
                         model_.status_delay, 0, {}};
      if constexpr (kIsTcp) {
        status.connections = model_.counters[0];
        for (size_t i = 0; i < kTcpCounters.size(); i++) status.more.emplace_back(kTcpCounters[i], model_.counters[i]);
      }
      if constexpr (kIsFadc) {
        for (size_t i = 0; i < kFadcCounters.size(); i++)
          status.more.emplace_back(kFadcCounters[i], model_.counters[kTcpCounters.size() + i]);
      }
      return status;
    }
  }
  void close() override {
    if constexpr (kIsTcp || kIsUdp) model_.enable = 0;
  }
  PtpState ptp() const override {
    if constexpr (kIsUdp) {
      // Seconds above 32 bits of nanoseconds.
      const uint64_t low = model_.ptp_now[0] | uint64_t{model_.ptp_now[1]} << 32;
      const int64_t seconds = static_cast<int64_t>(low >> 32 | uint64_t{model_.ptp_now[2]} << 32);
      const auto ns = static_cast<int64_t>(low & 0xFFFFFFFF);
      return {seconds * 1'000'000'000 + ns, static_cast<int32_t>(model_.ptp_offset), static_cast<int32_t>(model_.ptp_delay),
              static_cast<int32_t>(model_.ptp_rate), model_.ptp_locked != 0};
    }
    return {};
  }
  double line_rate() const override { return Phy::kBitsPerClock * 1e12 / static_cast<double>(periods_[kTx]); }

 private:
  enum { kUser, kTx, kRx };
  // Longer than a frame and a command's way through the core take.
  static constexpr unsigned kQuietClocks = 20000;

  // PTP's clock and that of the samples never stand still.
  bool has_time() const {
    if constexpr (kIsUdp) return model_.ptp_role != 0;
    return false;
  }

  void set(const FadcSettings& s) {
    constexpr double kSampleSeconds = static_cast<double>(kSamplePeriod) * 1e-12;
    const auto rate = [](double per_second) {
      return static_cast<uint32_t>(std::min(per_second * kSampleSeconds, 1.0) * ((1 << 20) - 1) + 0.5);
    };
    const auto ticks = [](double us) { return static_cast<uint32_t>(us * 1e-6 / kSampleSeconds + 0.5); };
    const auto elapsed = static_cast<unsigned __int128>(s.first_window) * s.window_ns;
    model_.source_id = s.source_id;
    model_.first_window = s.first_window;
    model_.first_sec = s.begin + static_cast<uint64_t>(elapsed / 1'000'000'000);
    model_.first_nsec = static_cast<uint32_t>(elapsed % 1'000'000'000);
    model_.window_ticks = static_cast<uint32_t>(s.window_ns * 1000 / kSamplePeriod);
    model_.keepalive = s.keepalive;
    model_.windows = s.windows;
    model_.module_enable = s.modules;
    model_.pulse_seed = s.seed;
    model_.pulse_rate = rate(s.rate);
    model_.burst_rate = rate(s.burst_rate);
    model_.burst_every = ticks(s.burst_every_us);
    model_.burst_ticks = ticks(s.burst_us);
    model_.noise = static_cast<uint8_t>(s.noise);
  }

  CData& clock(int i) { return i == kUser ? model_.user_clk : i == kTx ? model_.tx_clk : model_.rx_clk; }

  VerilatedContext context_;
  Model model_;
  std::unique_ptr<VerilatedFstC> wave_;
  Phy phy_;
  std::array<Picoseconds, 3> periods_{}, next_{};
  unsigned quiet_ = 0;
};

}  // namespace

std::unique_ptr<Board> Board::create(const BoardSettings& s) {
  if (s.protocol == "fade1") {
    if (s.phy == "gmii" && s.window == 32) return std::make_unique<VerilatedBoard<Vfade1, Gmii>>(s);
    throw std::invalid_argument("board: expected phy gmii and window 32 for FADE v1, not " + s.phy + " and " +
                                std::to_string(s.window));
  }
  if (s.protocol == "tcp" && s.phy == "gmii") return std::make_unique<VerilatedBoard<Vtcpgmii, Gmii>>(s);
  if (s.protocol == "tcp" && s.phy == "xgmii") return std::make_unique<VerilatedBoard<Vtcpxgmii, Xgmii>>(s);
  if (s.protocol == "fadc" && s.phy == "gmii") return std::make_unique<VerilatedBoard<Vfadcgmii, Gmii>>(s);
  if (s.protocol == "fadc" && s.phy == "xgmii") return std::make_unique<VerilatedBoard<Vfadcxgmii, Xgmii>>(s);
  if (s.protocol == "udp" && s.phy == "gmii") return std::make_unique<VerilatedBoard<Vudpgmii, Gmii>>(s);
  if (s.protocol == "udp" && s.phy == "xgmii") return std::make_unique<VerilatedBoard<Vudpxgmii, Xgmii>>(s);
  if (s.source.crate) {
    if (s.protocol == "fade10g" && s.phy == "xgmii" && s.window == 32)
      return std::make_unique<VerilatedBoard<Vxgmiicrate, Xgmii>>(s);
    throw std::invalid_argument("board: expected FADE-10G, phy xgmii and window 32 with a crate as its source");
  }
  if (s.phy == "gmii" && s.window == 16) return std::make_unique<VerilatedBoard<Vgmii16, Gmii>>(s);
  if (s.phy == "gmii" && s.window == 32) return std::make_unique<VerilatedBoard<Vgmii32, Gmii>>(s);
  if (s.phy == "gmii" && s.window == 64) return std::make_unique<VerilatedBoard<Vgmii64, Gmii>>(s);
  if (s.phy == "xgmii" && s.window == 16) return std::make_unique<VerilatedBoard<Vxgmii16, Xgmii>>(s);
  if (s.phy == "xgmii" && s.window == 32) return std::make_unique<VerilatedBoard<Vxgmii32, Xgmii>>(s);
  if (s.phy == "xgmii" && s.window == 64) return std::make_unique<VerilatedBoard<Vxgmii64, Xgmii>>(s);
  throw std::invalid_argument("board: expected phy gmii or xgmii and window 16, 32 or 64, not " + s.phy + " and " +
                              std::to_string(s.window));
}

}  // namespace fadelink
