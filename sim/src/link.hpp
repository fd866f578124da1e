// The link model: effects on frames in one direction between a board and the computer.
#pragma once

#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "frame.hpp"

namespace fadelink {

// What each is, and its unit: kSettings in link.cpp.
struct LinkSettings {
  double loss = 0, duplicate = 0, reorder = 0, corrupt = 0, rate = 0;
  Picoseconds delay = 0, jitter = 0, reorder_by = 20 * kMicrosecond;
  uint64_t queue = 0, mark = 0;

  // Reads "loss=0.01,delay=10us,rate=1000"; settings that are not named keep their value.
  void parse(const std::string& text);

  // Each setting, for the help; `fallback` is the value without it.
  struct Description {
    std::string name, unit, fallback, meaning;
  };
  static std::vector<Description> descriptions();
};

struct LinkCounters {
  uint64_t frames = 0, lost = 0, duplicated = 0, reordered = 0, corrupted = 0, queue_full = 0, marked = 0;
  uint64_t bytes = 0;  // that the rate took, with preamble and gap
};

class Link {
 public:
  Link(const LinkSettings& settings, uint64_t seed) : settings_(settings), random_(seed) {}

  // A frame with its frame check sequence enters at `now`.
  void push(Frame frame, Picoseconds now);
  // True if a frame has arrived by `now`; it is moved to `frame`.
  bool pop(Frame& frame, Picoseconds now);
  bool empty() const { return in_flight_.empty(); }
  // When the next frame arrives; none: the end of time.
  Picoseconds next() const { return in_flight_.empty() ? ~Picoseconds{0} : in_flight_.top().at; }
  // When all frames that have entered have arrived.
  Picoseconds latest() const { return latest_; }
  const LinkCounters& counters() const { return counters_; }

 private:
  struct InFlight {
    Picoseconds at;
    uint64_t order;
    Frame frame;
    bool operator<(const InFlight& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  bool chance(double probability) {
    return probability > 0 && std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }
  void schedule(Frame frame, Picoseconds at);

  LinkSettings settings_;
  std::mt19937_64 random_;
  std::priority_queue<InFlight> in_flight_;
  Picoseconds line_free_ = 0, latest_ = 0;
  uint64_t order_ = 0;
  LinkCounters counters_;
};

}  // namespace fadelink
