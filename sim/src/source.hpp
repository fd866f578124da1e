// What the core of a board takes from its source (of TCP and FADC: for its first stream), and a record of it in files.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace fadelink {

// The words of each transmission in a file of its own, PREFIX.1, PREFIX.2 and so on, as they are in memory.
class Record {
 public:
  explicit Record(std::string prefix) : prefix_(std::move(prefix)) {}

  void begin() {
    name_ = prefix_ + "." + std::to_string(++runs_);
    file_.close();
    file_.open(name_, std::ios::binary | std::ios::trunc);
    check();
  }
  void take(uint64_t word) { file_.write(reinterpret_cast<const char*>(&word), sizeof word); }
  // What was taken is in the file, also if the program is killed now.
  void flush() {
    if (runs_ == 0) return;
    file_.flush();
    check();
  }

 private:
  void check() {
    if (!file_) throw std::runtime_error("record " + name_ + ": " + std::strerror(errno));
  }

  const std::string prefix_;
  std::string name_;
  std::ofstream file_;
  unsigned runs_ = 0;
};

// The signals between source and core of a model, which record.vlt makes public.
template <class Model>
class Source {
 public:
  explicit Source(Model& model) : model_(model) {}

  bool running() const { return pick([](auto&, auto& running, auto&) { return running; }) & 1; }
  // A word is taken at the next edge of the user clock.
  bool takes() const {
    return pick([](auto& words, auto&, auto& ready) { return words[0] >> 1 & ready & 1; });
  }
  uint64_t word() const {
    return pick([](auto& words, auto&, auto&) { return words[0] >> 2 | uint64_t{words[1]} << 30 | uint64_t{words[2]} << 62; });
  }
  // Random words of the next transmission.
  void seed(uint64_t seed) {
    model_.source_seed = seed;
    auto& root = *model_.rootp;
    if constexpr (requires { root.example_board__DOT__g_fade__DOT__example__DOT__words; })
      root.example_board__DOT__g_fade__DOT__example__DOT__commands__DOT__seed = seed;
  }

 private:
  template <class Function>
  auto pick(Function function) const {
    auto& root = *model_.rootp;
#define SIGNALS(design, words, ready) \
  function(root.example_board__DOT__##design##__DOT__example__DOT__##words, root.example_board__DOT__##design##__DOT__example__DOT__user_running, \
           root.example_board__DOT__##design##__DOT__example__DOT__##ready)
    if constexpr (requires { root.example_board__DOT__g_fade__DOT__example__DOT__words; }) return SIGNALS(g_fade, words, words_tready);
    else if constexpr (requires { root.example_board__DOT__g_udp__DOT__example__DOT__words; }) return SIGNALS(g_udp, words, words_tready);
    else if constexpr (requires { root.example_board__DOT__g_tcp__DOT__example__DOT__s_axis; }) return SIGNALS(g_tcp, s_axis, s_axis_tready);
    else return SIGNALS(g_fadc, s_axis, s_axis_tready);
#undef SIGNALS
  }

  Model& model_;
};

// Writes the record of a model, and gives each transmission random words of its own.
template <class Model>
class Recorder {
 public:
  Recorder(Model& model, std::string prefix, uint64_t seed) : source_(model), record_(std::move(prefix)), seed_(seed) {}

  // Before each edge of the user clock.
  void clock() {
    const bool running = source_.running();
    if (running && !running_) {
      record_.begin();
      is_first_ = true;
    }
    running_ = running;
    if (!source_.takes()) return;
    record_.take(source_.word());
    // The source has read its seed.
    if (is_first_) source_.seed(seed_ += 0xD1B54A32D192ED03);
    is_first_ = false;
  }
  void flush() { record_.flush(); }

 private:
  Source<Model> source_;
  Record record_;
  uint64_t seed_;
  bool running_ = false, is_first_ = false;
};

}  // namespace fadelink
