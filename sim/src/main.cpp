// fadelink-sim: simulated boards on a network interface, or in virtual time.
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "run.hpp"

volatile sig_atomic_t fadelink::interrupted = 0;

namespace fadelink {
namespace {

int run(const Options& options) {
  try {
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = interrupted + 1; };
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // A file that may not be longer (RLIMIT_FSIZE) is an error of who writes it, as a full disk is.
    std::signal(SIGXFSZ, SIG_IGN);
    if (options.ptp_pair) return run_pair(options);
    return options.virtual_time ? run_virtual(options) : run_interface(options);
  } catch (const std::invalid_argument& e) {
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "fadelink-sim: " << e.what() << "\n";
    return 1;
  }
}

}  // namespace
}  // namespace fadelink

int main(int argc, char** argv) {
  using namespace fadelink;
  const auto [options, exit] = parse_options(argc, argv);
  const int status = exit ? *exit : run(options);
  if (std::cout.flush()) return status;
  std::cerr << "fadelink-sim: standard output: the result was not printed whole\n";
  return status == 0 ? 1 : status;
}
