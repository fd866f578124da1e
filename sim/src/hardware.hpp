// Boards from pin to pin, by the name of their top module.
#pragma once

#include <string>
#include <vector>

#include "board.hpp"

namespace fadelink {

std::vector<std::string> hardware_names();
// Interface of a board's PHY: rgmii or rmii.
std::string hardware_phy(const std::string& name);
// s.board is one of the names; throws std::invalid_argument if there is none with this protocol.
std::unique_ptr<Board> create_hardware(const BoardSettings& s);

}  // namespace fadelink
