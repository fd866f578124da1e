#include "hardware.hpp"

#include <algorithm>

#include "hardware_board.hpp"
#include "hardware_models.hpp"

namespace fadelink {
namespace {

// The signals of a board, below its top module: of the PLL, and of the design in `board`; the clocks of both directions.
#define SIGNALS(name, top, pll, tx, rx)                                                                      \
  template <class Model>                                                                                     \
  struct name {                                                                                              \
    Model& model;                                                                                            \
    CData &user_clk, &pll_clk, &locked, &running;                                                            \
    IData &phy, &sent, &retransmitted, &early, &delay;                                                       \
    explicit name(Model& m)                                                                                  \
        : model(m), user_clk(m.rootp->top##pll##clkos), pll_clk(m.rootp->top##pll##clkop),                   \
          locked(m.rootp->top##pll##locked), running(m.rootp->top##__DOT__board__DOT__board_design__DOT__##running),                         \
          phy(m.rootp->top##__DOT__board__DOT__board_design__DOT__##phy_status), sent(m.rootp->top##__DOT__board__DOT__board_design__DOT__##status_sent),                    \
          retransmitted(m.rootp->top##__DOT__board__DOT__board_design__DOT__##status_retransmitted), early(m.rootp->top##__DOT__board__DOT__board_design__DOT__##status_early), \
          delay(m.rootp->top##__DOT__board__DOT__board_design__DOT__##status_delay) {}                                                       \
    CData& tx_clk() { return tx; }                                                                           \
    CData& rx_clk() { return rx; }                                                                           \
  }
SIGNALS(Ulx3s, ulx3s, __DOT__pll__DOT__pll__DOT__, model.rmii_refclk, model.rmii_refclk);
SIGNALS(ColorlightI5, colorlight_i5, __DOT__board__DOT__pll__DOT__pll__DOT__, pll_clk, model.rgmii_rxc);
#undef SIGNALS

struct Entry {
  const char *board, *protocol, *phy;
  std::unique_ptr<Board> (*make)(const BoardSettings&);
};

template <class Model, class Phy, template <class> class Signals>
std::unique_ptr<Board> make(const BoardSettings& s) {
  return std::make_unique<HardwareBoard<Model, Phy, Signals<Model>>>(s);
}

constexpr Entry kHardware[] = {
#define HARDWARE(model, board, protocol, phy, signals) {#board, protocol, phy::kName, make<V##model, phy, signals>},
#include "hardware.def"
#undef HARDWARE
    {nullptr, nullptr, nullptr, nullptr}};

}  // namespace

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kHardware)
    if (entry.board != nullptr && std::find(names.begin(), names.end(), entry.board) == names.end()) names.emplace_back(entry.board);
  return names;
}

std::string hardware_phy(const std::string& name) {
  for (const Entry& entry : kHardware)
    if (entry.board != nullptr && name == entry.board) return entry.phy;
  throw std::invalid_argument("board " + name + ": there is none of this name");
}

std::unique_ptr<Board> create_hardware(const BoardSettings& s) {
  std::string protocols;
  for (const Entry& entry : kHardware) {
    if (entry.board == nullptr || s.board != entry.board) continue;
    if (s.protocol == entry.protocol) return entry.make(s);
    protocols += (protocols.empty() ? "" : ", ") + std::string(entry.protocol);
  }
  throw std::invalid_argument("--board " + s.board + " with --protocol " + s.protocol + ": expected " + protocols);
}

}  // namespace fadelink
