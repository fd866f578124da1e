#include "hardware.hpp"

#include <algorithm>

#include "hardware_board.hpp"
#include "hardware_models.hpp"

namespace fadelink {
namespace {

// The signals of a board, below its top module: of the PLL, and of the design; the clocks of both directions.
#define SIGNALS(name, pll, design, tx, rx)                                                                \
  template <class Model>                                                                                  \
  struct name {                                                                                           \
    Model& model;                                                                                         \
    CData &user_clk, &pll_clk, &locked, &running;                                                         \
    IData &phy, &sent, &retransmitted, &early, &delay;                                                    \
    explicit name(Model& m)                                                                               \
        : model(m), user_clk(m.rootp->pll##clkos), pll_clk(m.rootp->pll##clkop), locked(m.rootp->pll##locked), \
          running(m.rootp->design##running), phy(m.rootp->design##phy_status), sent(m.rootp->design##status_sent), \
          retransmitted(m.rootp->design##status_retransmitted), early(m.rootp->design##status_early),     \
          delay(m.rootp->design##status_delay) {}                                                         \
    CData& tx_clk() { return tx; }                                                                        \
    CData& rx_clk() { return rx; }                                                                        \
  }
SIGNALS(Ulx3s, ulx3s__DOT__pll__DOT__pll__DOT__, ulx3s__DOT__board__DOT__board_design__DOT__, model.rmii_refclk, model.rmii_refclk);
SIGNALS(ColorlightI5, colorlight_i5__DOT__board__DOT__ethernet__DOT__pll__DOT__pll__DOT__, colorlight_i5__DOT__board__DOT__board_design__DOT__, pll_clk,
        model.rgmii_rxc);
SIGNALS(Template, template__DOT__ethernet__DOT__pll__DOT__pll__DOT__, template__DOT__template_design__DOT__, pll_clk, model.rgmii_rxc);
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
