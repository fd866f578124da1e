#include "hardware.hpp"

#include <algorithm>

#include "hardware_board.hpp"
#include "hardware_models.hpp"

namespace fadelink {
namespace {

// The signals of a board, below its top module: of the PLL, and of the design.
#define BELOW(board, instance, signal) m.rootp->board##__DOT__##instance##__DOT__##signal
#define HARDWARE(name, board, protocol, phy_pins, pll, design)                                                              \
  struct name##_signals {                                                                                                  \
    CData &user_clk, &pll_clk, &locked, &running;                                                                          \
    IData &phy, &sent, &retransmitted, &early, &delay;                                                                     \
    explicit name##_signals(V##name& m)                                                                                    \
        : user_clk(BELOW(board, pll, clkos)), pll_clk(BELOW(board, pll, clkop)), locked(BELOW(board, pll, locked)),          \
          running(BELOW(board, design, running)), phy(BELOW(board, design, phy_status)), sent(BELOW(board, design, status_sent)), \
          retransmitted(BELOW(board, design, status_retransmitted)), early(BELOW(board, design, status_early)),              \
          delay(BELOW(board, design, status_delay)) {}                                                                     \
  };
#include "hardware.def"
#undef HARDWARE
#undef BELOW

struct Entry {
  const char *board, *protocol, *phy;
  std::unique_ptr<Board> (*make)(const BoardSettings&);
};

template <class Model, class Phy, class Signals>
std::unique_ptr<Board> make(const BoardSettings& s) {
  return std::make_unique<HardwareBoard<Model, Phy, Signals>>(s);
}

const std::vector<Entry> kHardware = {
#define HARDWARE(model, board, protocol, phy, pll, design) {#board, protocol, phy::kName, make<V##model, phy, model##_signals>},
#include "hardware.def"
#undef HARDWARE
};

}  // namespace

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kHardware)
    if (std::find(names.begin(), names.end(), entry.board) == names.end()) names.emplace_back(entry.board);
  return names;
}

std::string hardware_phy(const std::string& name) {
  for (const Entry& entry : kHardware)
    if (name == entry.board) return entry.phy;
  throw std::invalid_argument("board " + name + ": there is none of this name");
}

std::unique_ptr<Board> create_hardware(const BoardSettings& s) {
  std::string protocols;
  for (const Entry& entry : kHardware) {
    if (s.board != entry.board) continue;
    if (s.protocol == entry.protocol) return entry.make(s);
    protocols += (protocols.empty() ? "" : ", ") + std::string(entry.protocol);
  }
  throw std::invalid_argument("--board " + s.board + " with --protocol " + s.protocol + ": expected " + protocols);
}

}  // namespace fadelink
