// Converts between frames and the pins of each MAC.
#pragma once

#include "line.hpp"

namespace fadelink {

struct Gmii {
  static constexpr const char* kName = "gmii";
  static constexpr Picoseconds kPeriod = 8000;
  static constexpr unsigned kBitsPerClock = 8;
  GmiiSender sender;
  GmiiReceiver receiver;

  template <class Model>
  void drive(Model& model) {
    const auto pins = sender.clock();
    model.gmii_rxd = pins.data;
    model.gmii_rx_dv = pins.valid;
    model.gmii_rx_er = 0;
    model.gmii_tx_ce = model.gmii_rx_ce = 1;
  }
  template <class Model>
  std::optional<Frame> sample(const Model& model) {
    return receiver.clock(model.gmii_txd, model.gmii_tx_en, model.gmii_tx_er);
  }
};

struct Xgmii {
  static constexpr const char* kName = "xgmii";
  static constexpr Picoseconds kPeriod = 6400;
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

}  // namespace fadelink
