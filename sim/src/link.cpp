#include "link.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>
#include <variant>

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

// In picoseconds.
double duration(const std::string& name, const std::string& text) {
  static constexpr char kExpected[] = "a time with its unit: ns, us, ms or s";
  std::string unit;
  const double value = number(name, text, kExpected, &unit);
  const double scale = unit == "ns" ? 1e3 : unit == "us" ? 1e6 : unit == "ms" ? 1e9 : unit == "s" ? 1e12 : 0;
  if (scale == 0 || value * scale > 1e16) bad(name, text, kExpected);
  return std::round(value * scale);
}

enum class Kind { kProbability, kTime, kRate, kBytes };
constexpr const char* kUnits[] = {"0 to 1", "ns, us, ms or s", "Mb/s", "bytes"};

using S = LinkSettings;
struct Setting {
  const char* name;
  Kind kind;
  std::variant<double S::*, uint64_t S::*> member;
  const char* meaning;
};
constexpr Setting kSettings[] = {
    {"loss", Kind::kProbability, &S::loss, "probability that a frame is lost"},
    {"duplicate", Kind::kProbability, &S::duplicate, "probability that a frame arrives twice"},
    {"reorder", Kind::kProbability, &S::reorder, "probability that a frame arrives later, by reorder-by"},
    {"reorder-by", Kind::kTime, &S::reorder_by, "how much later a reordered frame arrives"},
    {"corrupt", Kind::kProbability, &S::corrupt, "probability that one to three bits of a frame are wrong"},
    {"delay", Kind::kTime, &S::delay, "time that each frame takes, in place of half of --rtt"},
    {"jitter", Kind::kTime, &S::jitter, "largest random time that a frame takes beyond delay; frames may overtake each other"},
    {"rate", Kind::kRate, &S::rate, "rate of the line; 0: no limit"},
    {"queue", Kind::kBytes, &S::queue, "bytes that wait for the rate, frames beyond them are lost; 0: no limit"},
    {"mark", Kind::kBytes, &S::mark, "waiting bytes from which on packets whose sender allows it are marked (RFC 3168); 0: none are"},
};

double read(const Setting& setting, const std::string& text) {
  switch (setting.kind) {
    case Kind::kProbability: return probability(setting.name, text);
    case Kind::kTime: return duration(setting.name, text);
    case Kind::kRate: return number(setting.name, text, "a rate in Mb/s");
    default: return number(setting.name, text, "a number of bytes");
  }
}

}  // namespace

std::vector<LinkSettings::Description> LinkSettings::descriptions() {
  const LinkSettings fallback;
  std::vector<Description> all;
  for (const Setting& s : kSettings) {
    std::ostringstream value;
    std::visit([&](auto member) { value << fallback.*member / (s.kind == Kind::kTime ? kMicrosecond : 1); }, s.member);
    all.push_back({s.name, kUnits[static_cast<int>(s.kind)], value.str() + (s.kind == Kind::kTime ? "us" : ""), s.meaning});
  }
  return all;
}

void LinkSettings::parse(const std::string& text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const auto* s = std::find_if(std::begin(kSettings), std::end(kSettings), [&](const Setting& s) { return s.name == name; });
    if (s == std::end(kSettings)) {
      std::string names;
      for (const Setting& known : kSettings) names += (names.empty() ? "" : ", ") + std::string(known.name);
      throw std::invalid_argument("link setting '" + item + "': expected one of " + names + ", with =VALUE");
    }
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    std::visit([&](auto member) { this->*member = static_cast<std::decay_t<decltype(this->*member)>>(read(*s, value)); }, s->member);
  }
}

void Link::schedule(Frame frame, Picoseconds at) {
  latest_ = std::max(latest_, at);
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
