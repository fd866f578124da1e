// Two boards with the UDP/IP stack on one cable, a PTP master and a PTP slave, in virtual time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "board.hpp"
#include "link.hpp"

namespace fadelink {

struct PtpPair {
  BoardSettings board;            // of both; their clocks are set here
  LinkSettings to_slave, to_master;
  double slave_ppm = 0;           // error of the slave's oscillator against the master's
  double settle_ms = 50, limit_ms = 150;
  uint64_t seed = 1;
  std::string capture;            // pcap of the cable, empty: none
};

// Runs until limit_ms. The report: the slave's true offset (ns, sampled from settle_ms on), what it says of itself, and
// whether it is locked.
nlohmann::ordered_json run_ptp_pair(const PtpPair& pair);

}  // namespace fadelink
