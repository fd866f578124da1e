// The man page, from the description of the options.
#pragma once

#include <CLI/CLI.hpp>

namespace fadelink {

inline constexpr char kPurpose[] = "Simulated boards: the RTL, compiled by Verilator, behind a link model.";
inline constexpr char kExample[] =
    "  terminal 1: fadelink-sim --iface fade0 --create-tap --link loss=0.01\n"
    "  terminal 2: fadelink receive --iface fade0 --feb 02:fa:de:00:00:01 --verify counter --packets 500\n";

// Prints the page of fadelink-sim, in roff.
void print_manual(const CLI::App& app);

}  // namespace fadelink
