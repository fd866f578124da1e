#include "ideal_receiver.hpp"

#include <cerrno>
#include <cstring>

namespace fadelink {
namespace {

// FADE-10G (docs/protocol/fade10g.md), as far as this model needs it.
constexpr uint16_t kStart = 1, kStop = 2, kAck = 3, kReadScratch = 0x0101;
constexpr uint16_t kData = 0xA5A5, kLast = 0xA5A6, kResponse = 0xA55A;
constexpr size_t kHeader = 40, kDataFrame = kHeader + 8192;
// FADE v1 (docs/protocol/fade1.md).
constexpr size_t kHeader1 = 24, kDataFrame1 = kHeader1 + 1024;
constexpr uint32_t kNumbers1 = 32 << 16;  // packet numbers before they wrap
constexpr uint64_t kFiller = 0xA5A5A5A5A5A5A5A5;
// FADE v1 confirms no STOP: the transmission is over when nothing has come for so long.
constexpr Picoseconds kQuiet1 = 50'000 * kMicrosecond;

uint16_t be16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
uint32_t be32(const uint8_t* p) { return uint32_t{be16(p)} << 16 | be16(p + 2); }
uint64_t le64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, 8);
  return value;
}

}  // namespace

IdealReceiver::IdealReceiver(const Settings& settings, Output output) : settings_(settings), output_(std::move(output)) {
  if (settings_.save.empty()) return;
  // Without a buffer each write tells whether it is in the file.
  file_.rdbuf()->pubsetbuf(nullptr, 0);
  file_.open(settings_.save, std::ios::binary);
  if (!file_) throw std::runtime_error("--save " + settings_.save + ": cannot be written");
}

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
  if (settings_.fade1) {
    std::fill(frame.begin() + 16, frame.end(), 0xA5);
    frame[14] = static_cast<uint8_t>(code_ >> 8);
    frame[15] = static_cast<uint8_t>(code_);
  }
  command_at_ = now;
  output_(std::move(frame));
}

void IdealReceiver::tick(Picoseconds now) {
  if (waiting_ && now >= command_at_ + settings_.command_timeout) send_command(now);
  if (settings_.fade1 && stop_sent_ && ahead_.empty() && now >= data_at_ + kQuiet1) {
    waiting_ = false;
    result_.complete = true;
  }
}

void IdealReceiver::receive(const Frame& frame, Picoseconds now) {
  if (settings_.fade1) {
    on_fade1(frame, now);
    return;
  }
  const uint16_t type = be16(&frame[16]);
  if (type == kResponse) {
    on_response(&frame[20], now);
  } else if ((type == kData || type == kLast) && frame.size() == kDataFrame) {
    on_response(&frame[28], now);
    if (started_) on_data(be32(&frame[20]) - settings_.first_packet, frame, type == kLast, now);
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

void IdealReceiver::on_fade1(const Frame& frame, Picoseconds now) {
  if (be16(&frame[14]) != kData || frame.size() != kDataFrame1) {
    result_.protocol_errors++;
    return;
  }
  // The first packet confirms START. STOP is repeated until there is silence.
  if (code_ == kStart) waiting_ = false;
  data_at_ = now;
  const uint32_t number = uint32_t{be16(&frame[16])} * 32 + (be16(&frame[18]) >> 10);
  const uint32_t ahead = (number - settings_.first_packet * 32 - next_) % kNumbers1;
  on_data(next_ + ahead - (ahead >= kNumbers1 / 2 ? kNumbers1 : 0), frame, false, now);
}

// Confirms the packet with its own header fields.
void IdealReceiver::confirm(const Frame& frame) {
  Frame ack(78, 0xA5);
  std::copy(frame.begin() + 6, frame.begin() + 12, ack.begin());
  std::copy(frame.begin(), frame.begin() + 6, ack.begin() + 6);
  const size_t type = settings_.fade1 ? 14 : 16, end = settings_.fade1 ? 20 : 28;
  std::copy(frame.begin() + 12, frame.begin() + static_cast<ptrdiff_t>(end), ack.begin() + 12);
  ack[type] = 0;
  ack[type + 1] = kAck;
  output_(std::move(ack));
}

void IdealReceiver::on_data(uint32_t packet, const Frame& frame, bool last, Picoseconds now) {
  const auto distance = static_cast<int32_t>(packet - next_);
  if (distance >= 64) {
    result_.protocol_errors++;
    return;
  }
  confirm(frame);
  if (distance < 0 || !ahead_.emplace(packet, std::pair{frame, last}).second) {
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
  const uint64_t words = last ? le64(&frame[kDataFrame - 8]) : packet_bytes() / 8;
  const uint8_t* data = &frame[settings_.fade1 ? kHeader1 : kHeader];
  for (uint64_t i = 0; i < words; i++) {
    const uint64_t word = le64(data + 8 * i);
    // What fills up the last packet of FADE v1, after STOP.
    if (word == kFiller && settings_.fade1 && stop_sent_) break;
    result_.wrong_words += settings_.pattern && word != result_.words;
    result_.words++;
  }
  if (file_.is_open() && !file_.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(words * 8))) {
    throw std::runtime_error("--save " + settings_.save + ": " + std::strerror(errno));
  }
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
