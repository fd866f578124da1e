// How fast a run is: its progress line, of which nothing is printed where standard error is not a terminal, and what its report says.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace fadelink {

class StatusLine {
 public:
  explicit StatusLine(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { clear(); }

  void clear() const {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }

  // Seconds since the start.
  double elapsed() const { return seconds(Clock::now() - begin_); }

  // True once a second: it is time for show().
  bool is_due() {
    if (!shown_) return false;
    const auto now = Clock::now();
    if (seconds(now - last_) < 1) return false;
    last_ = now;
    return true;
  }

  // `done`: the part of the run that is over, 0 to 1; 0: nothing ends it.
  void show(const std::string& text, double done) {
    std::ostringstream line;
    line << std::fixed << std::setprecision(0) << elapsed() << " s";
    if (done > 0) line << ", " << elapsed() * (1 / done - 1) << " s left";
    line << ", " << text;
    // A line that is longer than the terminal would not be overwritten.
    winsize size{};
    const size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    std::cerr << "\r\033[K" << line.str().substr(0, columns) << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

  const bool shown_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

// How long a simulation took, for its report.
inline std::string pace(double simulated_seconds, double seconds) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << simulated_seconds * 1e3 << " ms simulated in " << seconds << " s";
  if (simulated_seconds > 0) text << std::setprecision(0) << ": " << seconds / simulated_seconds << " times as long as real boards take";
  return text.str();
}

}  // namespace fadelink
