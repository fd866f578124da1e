#include "ideal_receiver.hpp"

#include <cstring>

namespace fadelink {
namespace {

// FADE-10G (design section 2), as far as this model needs it.
constexpr uint16_t kStart = 1, kStop = 2, kAck = 3, kReadScratch = 0x0101;
constexpr uint16_t kData = 0xA5A5, kLast = 0xA5A6, kResponse = 0xA55A;
constexpr size_t kHeader = 40, kDataFrame = kHeader + 8192;

uint16_t be16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
uint32_t be32(const uint8_t* p) { return uint32_t{be16(p)} << 16 | be16(p + 2); }
uint64_t le64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, 8);
  return value;
}

}  // namespace

void IdealReceiver::start(Picoseconds now) { command(kStart, 0, now); }

void IdealReceiver::command(uint16_t code, uint32_t argument, Picoseconds now) {
  code_ = code;
  argument_ = argument;
  csn_++;
  waiting_ = true;
  send_command(now);
}

void IdealReceiver::send_command(Picoseconds now) {
  Frame frame(78, 0xA5);
  std::copy(settings_.feb.begin(), settings_.feb.end(), frame.begin());
  const uint8_t rest[] = {0x02, 0xfa, 0xde, 0, 0, 0xf0, 0xFA, 0xDE, 1, 0, static_cast<uint8_t>(code_ >> 8),
                          static_cast<uint8_t>(code_), static_cast<uint8_t>(csn_ >> 8), static_cast<uint8_t>(csn_)};
  std::copy(std::begin(rest), std::end(rest), frame.begin() + 6);
  for (int i = 0; i < 4; i++) frame[20 + i] = static_cast<uint8_t>(argument_ >> (24 - 8 * i));
  command_at_ = now;
  output_(std::move(frame));
}

void IdealReceiver::tick(Picoseconds now) {
  if (waiting_ && now >= command_at_ + settings_.command_timeout) send_command(now);
}

void IdealReceiver::receive(const Frame& frame, Picoseconds now) {
  const uint16_t type = be16(&frame[16]);
  if (type == kResponse) {
    on_response(&frame[20], now);
  } else if ((type == kData || type == kLast) && frame.size() == kDataFrame) {
    on_response(&frame[28], now);
    if (started_) on_data(frame, type == kLast, now);
  } else {
    result_.protocol_errors++;
  }
}

void IdealReceiver::on_response(const uint8_t* response, Picoseconds now) {
  if (!waiting_ || be16(response) != code_ || be16(response + 2) != csn_) return;
  waiting_ = false;
  if (code_ == kStart) started_ = true;
  else if (code_ != kStop) result_.commands++;
  if (result_.packets >= settings_.packets && !stop_sent_) {
    stop_sent_ = true;
    command(kStop, 0, now);
  } else if (settings_.commands && !stop_sent_) {
    command(kReadScratch, 0, now);
  }
}

void IdealReceiver::on_data(const Frame& frame, bool last, Picoseconds now) {
  const uint32_t packet = be32(&frame[20]);
  const auto distance = static_cast<int32_t>(packet - next_ - settings_.first_packet);
  if (distance >= 64) {
    result_.protocol_errors++;
    return;
  }
  Frame ack(78, 0xA5);
  std::copy(frame.begin() + 6, frame.begin() + 12, ack.begin());
  std::copy(frame.begin(), frame.begin() + 6, ack.begin() + 6);
  std::copy(frame.begin() + 12, frame.begin() + 28, ack.begin() + 12);
  ack[16] = 0;
  ack[17] = kAck;
  output_(std::move(ack));
  if (distance < 0 || !ahead_.emplace(next_ + static_cast<uint32_t>(distance), std::pair{frame, last}).second) {
    result_.duplicates++;
    return;
  }
  for (auto it = ahead_.find(next_); it != ahead_.end(); it = ahead_.find(next_)) {
    deliver(it->second.first, it->second.second, now);
    ahead_.erase(it);
    next_++;
  }
}

void IdealReceiver::deliver(const Frame& frame, bool last, Picoseconds now) {
  const uint64_t words = last ? le64(&frame[kDataFrame - 8]) : 1024;
  for (uint64_t i = 0; i < words; i++) result_.wrong_words += le64(&frame[kHeader + 8 * i]) != result_.words + i;
  result_.words += words;
  result_.packets++;
  result_.complete |= last;
  if (result_.packets == settings_.warmup) {
    warm_at_ = now;
    warm_commands_ = result_.commands;
  }
  if (result_.packets == settings_.packets) {
    result_.measured = now - warm_at_;
    result_.measured_packets = settings_.packets - settings_.warmup;
    result_.measured_commands = result_.commands - warm_commands_;
    if (!waiting_ && !stop_sent_) {
      stop_sent_ = true;
      command(kStop, 0, now);
    }
  }
}

}  // namespace fadelink
