// The ways to run the boards; each returns the status to exit with.
#pragma once

#include <signal.h>

#include "options.hpp"

namespace fadelink {

// Signals that asked to end, so far.
extern volatile sig_atomic_t interrupted;

// In simulated time, before ideal receivers.
int run_virtual(const Options& o);
// On a network interface.
int run_interface(const Options& o);
// A PTP master and a slave on one cable, in simulated time.
int run_pair(const Options& o);

}  // namespace fadelink
