// The modes of the program; each returns the exit status.
#pragma once

#include <signal.h>

#include "options.hpp"

namespace fadelink {

// Number of signals so far that request the end.
extern volatile sig_atomic_t interrupted;

// In simulated time, before ideal receivers.
int run_virtual(const Options& o);
// On a network interface.
int run_interface(const Options& o);
// A PTP master and a slave on one cable, in simulated time.
int run_pair(const Options& o);

}  // namespace fadelink
