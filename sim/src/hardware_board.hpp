// A board from pin to pin: the Verilated model of a top module of rtl/boards, with its oscillators and its PHY.
#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "board.hpp"
#include "mdio_phy.hpp"
#include "phy_pins.hpp"

namespace fadelink {

// Signals: references to those inside the model that this program drives or shows.
template <class Model, class Phy, class Signals>
class HardwareBoard : public Board {
 public:
  explicit HardwareBoard(const BoardSettings& s)
      : speed_(s.speed), model_(&context_), signals_(model_), phy_(s.speed), mdio_(kPhyAddress, s.speed) {
    periods_ = {kUserPeriod, s.tx.period ? s.tx.period : Phy::kTxPeriod, s.rx.period ? s.rx.period : phy_.rx_period()};
    if (!s.wave.empty()) {
      // Verilator's own check comes only with the first sample.
      if (!std::ofstream(s.wave)) throw std::runtime_error("wave file " + s.wave + ": " + std::strerror(errno));
      context_.traceEverOn(true);
      wave_ = std::make_unique<VerilatedFstC>();
      model_.trace(wave_.get(), 99);
      wave_->open(s.wave.c_str());
    }
    model_.mdio = 1;
    signals_.locked = 0;
    model_.eval();
    const Picoseconds settle = 16 * *std::max_element(periods_.begin(), periods_.end());
    for (auto& next : next_) next = kUserPeriod;
    run(settle, [](Frame, Picoseconds) {});
    signals_.locked = 1;
  }
  ~HardwareBoard() override {
    model_.final();
    if (wave_) wave_->close();
  }

  void run(Picoseconds until, const Output& output) override {
    // Half a period each.
    for (;;) {
      const Picoseconds now = *std::min_element(next_.begin(), next_.end());
      if (now >= until) return;
      const bool tx = next_[kTx] == now, rx = next_[kRx] == now, user = next_[kUser] == now;
      if (tx && !tx_clk())
        if (auto frame = phy_.tx_rises(model_)) output(std::move(*frame), now);
      if (rx && !rx_clk()) phy_.drive(model_);
      if (rx && rx_clk()) phy_.rx_falls(model_);
      if (user) signals_.user_clk = !signals_.user_clk;
      if (tx) tx_clk() = !tx_clk();
      // A PHY may have one clock for both directions.
      if (rx && &rx_clk() != &tx_clk()) rx_clk() = !rx_clk();
      for (int i = 0; i < 3; i++)
        if (next_[i] == now) next_[i] += periods_[i] / 2;
      model_.eval();
      if (wave_) wave_->dump(now);
      if (!tx || !tx_clk()) continue;
      model_.mdio = mdio_.clock(model_.mdc, model_.mdio__en, model_.mdio__out);
      if (auto frame = phy_.sample(model_)) output(std::move(*frame), now);
      quiet_ = signals_.running || !is_up() ? 0 : quiet_ + 1;
    }
  }

  // A PHY has no frames while its link is down.
  void send(Frame frame) override {
    if (!is_up()) {
      no_link_++;
      return;
    }
    phy_.sender().push(std::move(frame));
    quiet_ = 0;
  }
  bool idle() const override { return quiet_ > kQuietClocks && phy_.sender().empty(); }
  BoardStatus status() const override {
    BoardStatus status{signals_.running != 0, signals_.sent, signals_.retransmitted, signals_.early, signals_.delay, 0, {}};
    constexpr uint32_t kSpeeds[] = {10, 100, 1000, 0};
    status.more = {{"link_up", is_up()},
                   {"link_mbps", is_up() ? kSpeeds[signals_.phy >> 1 & 3] : 0},
                   {"link_full_duplex", signals_.phy >> 3 & 1},
                   {"link_downs", signals_.phy >> 16},
                   {"dropped_no_link", no_link_}};
    return status;
  }
  void close() override {}
  PtpState ptp() const override { return {}; }
  void pulse(bool) override {}
  double line_rate() const override { return speed_ * 1e6; }

 private:
  enum { kUser, kTx, kRx };
  static constexpr Picoseconds kUserPeriod = 16000;  // of the PLL
  static constexpr unsigned kPhyAddress = 0;
  // Longer than a frame and a command's way through the core take, at the lowest speed.
  static constexpr unsigned kQuietClocks = 400000;

  bool is_up() const { return signals_.phy & 1; }
  CData& tx_clk() { return Phy::tx_clk(model_, signals_.pll_clk); }
  CData& rx_clk() { return Phy::rx_clk(model_); }

  const unsigned speed_;
  VerilatedContext context_;
  Model model_;
  Signals signals_;
  std::unique_ptr<VerilatedFstC> wave_;
  mutable Phy phy_;
  MdioPhy mdio_;
  std::array<Picoseconds, 3> periods_{}, next_{};
  unsigned quiet_ = 0;
  uint32_t no_link_ = 0;
};

}  // namespace fadelink
