#include "ideal_tcp.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "ip_frame.hpp"

namespace fadelink {
namespace {

constexpr size_t kTcp = 34;
constexpr uint8_t kProtocol = 6;
constexpr uint8_t kFin = 1, kSyn = 2, kAck = 16, kEce = 64, kCwr = 128;
constexpr uint32_t kIss = 0x10000000;
constexpr uint8_t kSackAllowed = 4, kSack = 5;  // options (RFC 2018)
constexpr size_t kMostBlocks = 4;

// Does a SYN have an option, whose value is not wanted?
bool has_option(const uint8_t* options, size_t size, uint8_t kind) {
  for (size_t i = 0; i < size && options[i] != 0; i += options[i] == 1 ? 1 : std::max<size_t>(2, options[i + 1]))
    if (options[i] == kind) return true;
  return false;
}

}  // namespace

void IdealTcp::start(Picoseconds) {
  started_ = true;
  if (waiting_) output_(std::move(*waiting_));
}

void IdealTcp::receive(const Frame& frame, Picoseconds) {
  if (auto reply = arp_reply(frame)) {
    if (started_) output_(std::move(*reply));
    else waiting_ = std::move(reply);
  } else if (be16(&frame[12]) == kIpv4 && frame[23] == kProtocol && frame.size() >= kTcp + 20)
    on_segment(frame);
}

void IdealTcp::on_segment(const Frame& frame) {
  const size_t length = be16(&frame[16]) - 20;
  const uint16_t port = be16(&frame[34]);
  const uint8_t flags = frame[47];
  const size_t header = static_cast<size_t>(frame[46] >> 4) * 4;
  if (checksum(&frame[kIp], 20, 0) != 0 || kTcp + length > frame.size() || checksum(&frame[kTcp], length, pseudo_sum(frame, kProtocol, length)) != 0) {
    result_.protocol_errors++;
    return;
  }
  const uint32_t sequence = be32(&frame[38]);
  if (flags & kSyn) {
    Stream& stream = streams_[port];
    stream = Stream{};
    stream.first = sequence + 1;
    if (!settings_.save.empty()) {
      const std::string name = settings_.save + "." + std::to_string(port);
      // Without a buffer each write tells whether it is in the file.
      stream.file.rdbuf()->pubsetbuf(nullptr, 0);
      stream.file.open(name, std::ios::binary);
      if (!stream.file) throw std::runtime_error("--save " + name + ": cannot be written");
    }
    stream.selective = has_option(&frame[kTcp + 20], header - 20, kSackAllowed);
    stream.marks = (flags & kEce) && (flags & kCwr);
    answer(frame, stream, kSyn | kAck | (stream.marks ? kEce : 0));
    return;
  }
  const auto found = streams_.find(port);
  if (found == streams_.end()) {
    result_.protocol_errors++;
    return;
  }
  Stream& stream = found->second;
  const auto ahead = static_cast<int32_t>(sequence - stream.first - static_cast<uint32_t>(stream.bytes));
  const size_t size = length - header;
  if (flags & kCwr) stream.marked = false;
  if ((frame[15] & kEcnMask) == kCongestionMark) stream.marked = true;
  stream.latest = stream.bytes + static_cast<uint64_t>(static_cast<int64_t>(ahead));
  if (size > 0 && ahead > 0) stream.ahead.emplace(stream.bytes + ahead, Frame(&frame[kTcp + header], &frame[kTcp + header] + size));
  else if (size > 0 && static_cast<int64_t>(size) + ahead <= 0) result_.duplicates++;
  else if (size > 0) deliver(stream, stream.bytes - static_cast<uint64_t>(-ahead), &frame[kTcp + header], size);
  while (!stream.ahead.empty() && stream.ahead.begin()->first <= stream.bytes) {
    const auto next = stream.ahead.extract(stream.ahead.begin());
    deliver(stream, next.key(), next.mapped().data(), next.mapped().size());
  }
  if ((flags & kFin) && sequence + size == stream.first + static_cast<uint32_t>(stream.bytes)) stream.ended = true;
  if (size > 0 || (flags & kFin)) answer(frame, stream, (stream.ended ? kFin | kAck : kAck) | (stream.marks && stream.marked ? kEce : 0));
  result_.complete = streams_.size() == settings_.streams &&
                     std::all_of(streams_.begin(), streams_.end(), [](const auto& s) { return s.second.ended; });
}

// Data from `place` on, of which the words from stream.bytes on are new.
void IdealTcp::deliver(Stream& stream, uint64_t place, const uint8_t* data, size_t size) {
  while (place + size > stream.bytes) {
    uint64_t word;
    std::memcpy(&word, data + (stream.bytes - place), 8);
    if (settings_.pattern) result_.wrong_words += word != stream.bytes / 8;
    if (stream.file.is_open() && !stream.file.write(reinterpret_cast<const char*>(&word), sizeof word)) {
      throw std::runtime_error("--save " + settings_.save + ": " + std::strerror(errno));
    }
    stream.bytes += 8;
    result_.words++;
    result_.packets++;
  }
}

// Options of an answer: of a SYN maximum segment size and scale; then what came out of order, first where the last segment is.
Frame IdealTcp::options(const Stream& stream, bool syn, unsigned scale) const {
  Frame out;
  if (syn) {
    out = {2, 4, static_cast<uint8_t>(settings_.mss >> 8), static_cast<uint8_t>(settings_.mss), 1, 3, 3, static_cast<uint8_t>(scale)};
    if (stream.selective)
      for (const uint8_t byte : {uint8_t{1}, uint8_t{1}, kSackAllowed, uint8_t{2}}) out.push_back(byte);
    return out;
  }
  if (!stream.selective || stream.ahead.empty()) return out;
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  for (const auto& [place, data] : stream.ahead) {
    if (blocks.empty() || place > blocks.back().second) blocks.emplace_back(place, place + data.size());
    else blocks.back().second = std::max(blocks.back().second, place + data.size());
  }
  std::stable_partition(blocks.begin(), blocks.end(),
                        [&](const auto& block) { return block.first <= stream.latest && stream.latest < block.second; });
  blocks.resize(std::min(blocks.size(), kMostBlocks));
  out.resize(4 + 8 * blocks.size());
  out[0] = out[1] = 1;
  out[2] = kSack;
  out[3] = static_cast<uint8_t>(2 + 8 * blocks.size());
  for (size_t i = 0; i < blocks.size(); i++) {
    put32(&out[4 + 8 * i], stream.first + static_cast<uint32_t>(blocks[i].first));
    put32(&out[8 + 8 * i], stream.first + static_cast<uint32_t>(blocks[i].second));
  }
  return out;
}

void IdealTcp::answer(const Frame& frame, const Stream& stream, unsigned flags) {
  const bool syn = flags & kSyn;
  unsigned scale = 0;
  while (settings_.window >> scale > 0xFFFF) scale++;
  const Frame more = options(stream, syn, scale);
  Frame out(kTcp + 20 + more.size());
  std::copy(settings_.feb.begin(), settings_.feb.end(), out.begin());
  std::copy(kReceiverMac.begin(), kReceiverMac.end(), out.begin() + 6);
  put16(&out[12], kIpv4);
  out[14] = 0x45;
  put16(&out[16], static_cast<uint32_t>(out.size() - kIp));
  put16(&out[20], 0x4000);
  out[22] = 64;
  out[23] = kProtocol;
  std::copy(&frame[30], &frame[34], out.begin() + 26);
  std::copy(&frame[26], &frame[30], out.begin() + 30);
  put16(&out[24], checksum(&out[kIp], 20, 0));
  put16(&out[34], settings_.port);
  put16(&out[36], be16(&frame[34]));
  put32(&out[38], syn ? kIss : kIss + 1);
  put32(&out[42], stream.first + static_cast<uint32_t>(stream.bytes) + (stream.ended ? 1 : 0));
  out[46] = static_cast<uint8_t>((out.size() - kTcp) / 4 << 4);
  out[47] = static_cast<uint8_t>(flags);
  put16(&out[48], syn ? std::min(settings_.window, 0xFFFFu) : settings_.window >> scale);
  std::copy(more.begin(), more.end(), out.begin() + kTcp + 20);
  put16(&out[50], checksum(&out[kTcp], out.size() - kTcp, pseudo_sum(out, kProtocol, out.size() - kTcp)));
  output_(std::move(out));
}

}  // namespace fadelink
