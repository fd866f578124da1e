#include "link.hpp"

#include <charconv>
#include <cmath>
#include <sstream>

#include "ip_frame.hpp"

namespace fadelink {
namespace {

[[noreturn]] void bad(const std::string& name, const std::string& value, const char* expected) {
  throw std::invalid_argument("link setting " + name + "=" + value + ": expected " + expected);
}

double number(const std::string& name, const std::string& text, const char* expected, std::string* unit = nullptr) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string rest(end, text.data() + text.size());
  if (error != std::errc() || !std::isfinite(value) || value < 0 || (unit == nullptr && !rest.empty()))
    bad(name, text, expected);
  if (unit != nullptr) *unit = rest;
  return value;
}

double probability(const std::string& name, const std::string& text) {
  const double value = number(name, text, "a probability from 0 to 1");
  if (value > 1) bad(name, text, "a probability from 0 to 1");
  return value;
}

Picoseconds duration(const std::string& name, const std::string& text) {
  static constexpr char kExpected[] = "a time with its unit: ns, us, ms or s";
  std::string unit;
  const double value = number(name, text, kExpected, &unit);
  const double scale = unit == "ns" ? 1e3 : unit == "us" ? 1e6 : unit == "ms" ? 1e9 : unit == "s" ? 1e12 : 0;
  if (scale == 0 || value * scale > 1e16) bad(name, text, kExpected);
  return static_cast<Picoseconds>(std::llround(value * scale));
}

}  // namespace

void LinkSettings::parse(const std::string& text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (name == "loss") loss = probability(name, value);
    else if (name == "duplicate") duplicate = probability(name, value);
    else if (name == "reorder") reorder = probability(name, value);
    else if (name == "corrupt") corrupt = probability(name, value);
    else if (name == "delay") delay = duration(name, value);
    else if (name == "jitter") jitter = duration(name, value);
    else if (name == "reorder-by") reorder_by = duration(name, value);
    else if (name == "rate") rate = number(name, value, "a rate in Mb/s");
    else if (name == "mark") mark = static_cast<uint64_t>(number(name, value, "a number of bytes"));
    else if (name == "queue") queue = static_cast<uint64_t>(number(name, value, "a number of bytes"));
    else
      throw std::invalid_argument("link setting '" + item + "': expected loss, duplicate, reorder, corrupt, delay, "
                                  "jitter, reorder-by, rate, queue or mark, with =VALUE");
  }
}

void Link::schedule(Frame frame, Picoseconds at) {
  if (settings_.jitter > 0) at += std::uniform_int_distribution<Picoseconds>(0, settings_.jitter)(random_);
  in_flight_.push({at, order_++, std::move(frame)});
}

void Link::push(Frame frame, Picoseconds now) {
  counters_.frames++;
  if (chance(settings_.loss)) {
    counters_.lost++;
    return;
  }
  Picoseconds at = now;
  if (settings_.rate > 0) {
    const double ps_per_byte = 8e6 / settings_.rate;
    if (line_free_ < now) line_free_ = now;
    const double waiting = static_cast<double>(line_free_ - now) / ps_per_byte;
    if (settings_.queue > 0 && waiting > static_cast<double>(settings_.queue)) {
      counters_.queue_full++;
      return;
    }
    if (settings_.mark > 0 && waiting > static_cast<double>(settings_.mark)) counters_.marked += mark_congestion(frame);
    const size_t size = frame.size() + 20;  // with preamble and gap
    counters_.bytes += size;
    line_free_ += static_cast<Picoseconds>(static_cast<double>(size) * ps_per_byte);
    at = line_free_;
  }
  at += settings_.delay;
  if (chance(settings_.corrupt)) {
    counters_.corrupted++;
    const int flips = std::uniform_int_distribution<>(1, 3)(random_);
    for (int i = 0; i < flips; i++) {
      const size_t bit = std::uniform_int_distribution<size_t>(0, frame.size() * 8 - 1)(random_);
      frame[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
  }
  if (chance(settings_.duplicate)) {
    counters_.duplicated++;
    schedule(frame, at);
  }
  if (chance(settings_.reorder)) {
    counters_.reordered++;
    at += settings_.reorder_by;
  }
  schedule(std::move(frame), at);
}

bool Link::pop(Frame& frame, Picoseconds now) {
  if (in_flight_.empty() || in_flight_.top().at > now) return false;
  frame = std::move(const_cast<InFlight&>(in_flight_.top()).frame);
  in_flight_.pop();
  return true;
}

}  // namespace fadelink
