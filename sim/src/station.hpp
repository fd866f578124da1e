// A board, and the two directions of its link.
#pragma once

#include <nlohmann/json.hpp>

#include "link.hpp"
#include "options.hpp"

namespace fadelink {

using Json = nlohmann::ordered_json;

struct Station {
  Mac mac;
  std::unique_ptr<Board> board;
  Link up, down;
  uint64_t fcs_errors = 0, send_failures = 0;
};

// The boards that the options ask for; throws std::invalid_argument if there is none such.
std::vector<Station> make_stations(const Options& o);

// Simulates a board, and moves its frames to and from its link.
void advance(Station& s, Picoseconds until);

// Counters, for the report.
Json to_json(const LinkCounters& c);
Json to_json(const Station& s);

}  // namespace fadelink
