// Converts between frames and the pins of a PHY, at the speed of its link.
#pragma once

#include "line.hpp"

namespace fadelink {

// Symbols of a byte, the lowest first, on a line that has bytes of GMII.
template <unsigned kBits>
class SymbolLine {
 public:
  GmiiSender sender;

  // The next symbol to the board, and whether it is one of a frame.
  GmiiSender::Pins next() {
    if (out_ == 0) pins_ = sender.clock();
    const GmiiSender::Pins symbol{static_cast<uint8_t>(pins_.data >> (kBits * out_) & ((1 << kBits) - 1)), pins_.valid};
    out_ = (out_ + 1) % kSymbols;
    return symbol;
  }
  // A symbol from the board.
  std::optional<Frame> take(uint8_t data, bool valid, bool error) {
    if (!valid) {
      in_ = 0;
      return receiver_.clock(0, false, false);
    }
    byte_ = static_cast<uint8_t>(byte_ >> kBits | data << (8 - kBits));
    bad_ = error || (bad_ && in_ != 0);
    in_ = (in_ + 1) % kSymbols;
    return in_ == 0 ? receiver_.clock(byte_, true, bad_) : std::nullopt;
  }

 private:
  static constexpr unsigned kSymbols = 8 / kBits;
  GmiiSender::Pins pins_;
  GmiiReceiver receiver_;
  unsigned out_ = 0, in_ = 0;
  uint8_t byte_ = 0;
  bool bad_ = false;
};

// RMII: both directions with one clock of 50 MHz.
class Rmii {
 public:
  static constexpr const char* kName = "rmii";
  explicit Rmii(unsigned speed) : clocks_(speed == 100 ? 1 : 10) { line_.sender.period = kTxPeriod * 4 * clocks_; }
  static constexpr Picoseconds kTxPeriod = 20000;
  // The clocks of both directions; pll_clk: an output of the board's PLL.
  template <class Model, class Clock>
  static Clock& tx_clk(Model& model, Clock&) {
    return model.rmii_refclk;
  }
  template <class Model>
  static auto& rx_clk(Model& model) {
    return model.rmii_refclk;
  }
  Picoseconds rx_period() const { return kTxPeriod; }
  GmiiSender& sender() { return line_.sender; }

  template <class Model>
  void drive(Model& model) {
    if (++held_ < clocks_) return;
    held_ = 0;
    const auto symbol = line_.next();
    model.rmii_rxd = symbol.data;
    model.rmii_crs_dv = symbol.valid;
  }
  template <class Model>
  void rx_falls(Model&) {}
  template <class Model>
  std::optional<Frame> tx_rises(const Model&) {
    return {};
  }
  template <class Model>
  std::optional<Frame> sample(const Model& model) {
    // In the middle of a symbol.
    if (!model.rmii_tx_en) symbol_ = 0;
    const bool take = !model.rmii_tx_en || symbol_ == clocks_ / 2;
    if (model.rmii_tx_en) symbol_ = (symbol_ + 1) % clocks_;
    return take ? line_.take(model.rmii_txd, model.rmii_tx_en, false) : std::nullopt;
  }

 private:
  SymbolLine<2> line_;
  const unsigned clocks_;
  unsigned held_ = 0, symbol_ = 0;
};

// RGMII: DDR at both edges at 1 Gb/s; nibbles at the rising edges below that.
class Rgmii {
 public:
  static constexpr const char* kName = "rgmii";
  explicit Rgmii(unsigned speed) : speed_(speed) { sender().period = speed == 1000 ? kTxPeriod : 2 * rx_period(); }
  static constexpr Picoseconds kTxPeriod = 8000;
  template <class Model, class Clock>
  static Clock& tx_clk(Model&, Clock& pll_clk) {
    return pll_clk;
  }
  template <class Model>
  static auto& rx_clk(Model& model) {
    return model.rgmii_rxc;
  }
  Picoseconds rx_period() const { return speed_ == 1000 ? 8000 : speed_ == 100 ? 40000 : 400000; }
  GmiiSender& sender() { return line_.sender; }

  // Ahead of the rising edge of rgmii_rxc.
  template <class Model>
  void drive(Model& model) {
    const auto pins = speed_ == 1000 ? line_.sender.clock() : line_.next();
    second_ = speed_ == 1000 ? pins.data >> 4 : pins.data & 15;
    model.rgmii_rxd = pins.data & 15;
    model.rgmii_rx_ctl = pins.valid;
  }
  // At its falling edge.
  template <class Model>
  void rx_falls(Model& model) {
    model.rgmii_rxd = second_;
  }
  // Ahead of a rising edge of the board's clock: the second half of what it sent.
  template <class Model>
  std::optional<Frame> tx_rises(const Model& model) {
    if (speed_ != 1000) return {};
    return receiver_.clock(static_cast<uint8_t>(first_ | model.rgmii_txd << 4), valid_, valid_ != (model.rgmii_tx_ctl != 0));
  }
  // Behind it.
  template <class Model>
  std::optional<Frame> sample(const Model& model) {
    first_ = model.rgmii_txd;
    valid_ = model.rgmii_tx_ctl;
    const bool rises = model.rgmii_txc && !txc_;
    txc_ = model.rgmii_txc;
    return speed_ != 1000 && rises ? line_.take(first_, valid_, false) : std::nullopt;
  }

 private:
  SymbolLine<4> line_;
  GmiiReceiver receiver_;
  const unsigned speed_;
  uint8_t first_ = 0, second_ = 0;
  bool valid_ = false, txc_ = false;
};

}  // namespace fadelink
