// A board: the Verilated model of rtl/boards/example/example_board.sv, with its clocks and its pins.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>

#include "board.hpp"
#include "pins.hpp"
#include "source.hpp"

namespace fadelink {

// Names of the pins `counters`, by protocol.
std::span<const char* const> counter_names(const std::string& protocol);

template <class Model, class Phy>
class VerilatedBoard : public Board {
 public:
  explicit VerilatedBoard(const BoardSettings& s) : protocol_(s.protocol), model_(&context_) {
    const Picoseconds user = s.protocol == "fadc" || s.source.crate ? kSamples * kSamplePeriod : Phy::kPeriod;
    periods_ = {s.user.period ? s.user.period : user, s.tx.period ? s.tx.period : Phy::kPeriod,
                s.rx.period ? s.rx.period : Phy::kPeriod};
    fractions_ = {s.user.fraction, s.tx.fraction, s.rx.fraction};
    phy_.sender.period = periods_[kRx];
    next_ = {periods_[kUser] + s.user.phase, periods_[kTx] + s.tx.phase, periods_[kRx] + s.rx.phase};
    if (!s.wave.empty()) {
      // Verilator's own check comes only with the first sample.
      if (!std::ofstream(s.wave)) throw std::runtime_error("wave file " + s.wave + ": " + std::strerror(errno));
      context_.traceEverOn(true);
      wave_ = std::make_unique<VerilatedFstC>();
      model_.trace(wave_.get(), 99);
      wave_->open(s.wave.c_str());
    }
    if (!s.record.empty()) recorder_.emplace(model_, s.record, s.source.seed);
    set(s);
    model_.rst = 1;
    model_.eval();
    const Picoseconds settle = 16 * *std::max_element(periods_.begin(), periods_.end());
    run(settle, [](Frame, Picoseconds) {});
    model_.rst = 0;
    run(2 * settle, [](Frame, Picoseconds) {});
  }
  ~VerilatedBoard() override {
    // A model leaves the context of its thread, which is that of the last board that ran.
    Verilated::threadContextp(&context_);
    model_.final();
    if (wave_) wave_->close();
  }

  void run(Picoseconds until, const Output& output) override {
    for (;;) {
      const Picoseconds now = std::min({next_[kUser], next_[kTx], next_[kRx]});
      if (now >= until) break;
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
      if (rise[kUser] && recorder_) recorder_->clock();
      for (int i = 0; i < 3; i++) {
        clock(i) = rise[i];
        if (!rise[i]) continue;
        parts_[i] += fractions_[i];
        next_[i] += periods_[i] + parts_[i] / 1024;
        parts_[i] %= 1024;
      }
      model_.eval();
      if (wave_) wave_->dump(now);
      if (rise[kTx]) {
        if (auto frame = phy_.sample(model_)) output(std::move(*frame), now);
        // PTP's clock never stands still.
        quiet_ = model_.running || model_.ptp_role != 0 ? 0 : quiet_ + 1;
      }
    }
    if (recorder_) recorder_->flush();
  }

  void send(Frame frame) override {
    phy_.sender.push(std::move(frame));
    quiet_ = 0;
  }
  bool idle() const override { return quiet_ > kQuietClocks && phy_.sender.empty(); }
  BoardStatus status() const override {
    BoardStatus status{model_.running != 0, model_.status_sent, model_.status_retransmitted, model_.status_early,
                       model_.status_delay, protocol_ == "tcp" || protocol_ == "fadc" ? model_.counters[0] : 0, {}};
    const auto names = counter_names(protocol_);
    for (size_t i = 0; i < names.size(); i++) status.more.emplace_back(names[i], model_.counters[i]);
    if (protocol_ == "udp") status.more.emplace_back("path", model_.path);
    return status;
  }
  void close() override { model_.enable_pin = 0; }
  void pulse(bool level) override { model_.pulse_pin = level; }
  PtpState ptp() const override {
    // Seconds above 32 bits of nanoseconds.
    const uint64_t low = model_.ptp_now[0] | uint64_t{model_.ptp_now[1]} << 32;
    const int64_t seconds = static_cast<int64_t>(low >> 32 | uint64_t{model_.ptp_now[2]} << 32);
    const auto ns = static_cast<int64_t>(low & 0xFFFFFFFF);
    return {seconds * 1'000'000'000 + ns, static_cast<int32_t>(model_.ptp_offset), static_cast<int32_t>(model_.ptp_delay),
            static_cast<int32_t>(model_.ptp_rate), model_.ptp_locked != 0};
  }
  double line_rate() const override { return Phy::kBitsPerClock * 1e12 / (static_cast<double>(periods_[kTx]) + fractions_[kTx] / 1024.0); }

 private:
  enum { kUser, kTx, kRx };
  // Longer than a frame and a command's way through the core take.
  static constexpr unsigned kQuietClocks = 20000;

  // Every design has a pin for every setting, and uses its own.
  void set(const BoardSettings& s) {
    model_.mac_address = to_u64(s.mac);
    model_.source_random = s.source.random;
    model_.source_seed = s.source.seed;
    model_.source_limit = s.source.limit;
    model_.source_gap = s.source.gap;
    model_.source_block = s.source.block;
    model_.first_packet = s.first_packet;
    model_.first_sequence = s.first_sequence;
    model_.paper_rule = s.paper_rule;
    set(s.ip);
    set(s.fadc);
    model_.ptp_role = s.ptp_role;
    model_.enable_pin = 1;
  }

  void set(const IpSettings& s) {
    model_.ip_address = s.address;
    model_.ip_mask = s.mask;
    model_.ip_gateway = s.gateway;
    model_.peer_ip = s.peer;
    model_.peer_port = s.peer_port;
    model_.local_port = s.local_port;
    model_.mtu = s.mtu;
    model_.push = s.push;
    model_.ecn = s.ecn;
    model_.sack = s.sack;
    model_.streams = s.streams;
    model_.payload = s.payload;
    model_.checksum = s.checksum;
    model_.start = !s.stopped;
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

  const std::string protocol_;
  VerilatedContext context_;
  Model model_;
  std::unique_ptr<VerilatedFstC> wave_;
  std::optional<Recorder<Model>> recorder_;
  Phy phy_;
  std::array<Picoseconds, 3> periods_{}, next_{};
  std::array<unsigned, 3> fractions_{}, parts_{};  // in 1/1024 ps
  unsigned quiet_ = 0;
};

}  // namespace fadelink
