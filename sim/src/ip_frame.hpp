// What the ideal receivers of IP protocols share: fields, checksums (RFC 1071), answers to ARP (RFC 826).
#pragma once

#include <algorithm>
#include <optional>

#include "frame.hpp"

namespace fadelink {

constexpr uint16_t kIpv4 = 0x0800;
constexpr size_t kIp = 14;  // where the IP header begins
constexpr Mac kReceiverMac{0x02, 0xfa, 0xde, 0, 0, 0xf0};

inline uint16_t be16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t be32(const uint8_t* p) { return uint32_t{be16(p)} << 16 | be16(p + 2); }
inline void put16(uint8_t* p, uint32_t value) {
  p[0] = static_cast<uint8_t>(value >> 8);
  p[1] = static_cast<uint8_t>(value);
}
inline void put32(uint8_t* p, uint32_t value) {
  put16(p, value >> 16);
  put16(p + 2, value);
}
inline uint16_t checksum(const uint8_t* data, size_t size, uint32_t sum) {
  for (size_t i = 0; i < size; i++) sum += i % 2 ? data[i] : uint32_t{data[i]} << 8;
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

constexpr uint8_t kEcnMask = 3, kCongestionMark = 3;  // of the header's second byte (RFC 3168 5)

// Marks a packet, in a frame with its frame check sequence, as a switch does whose queue fills (RFC 3168 5): true if it may be marked.
inline bool mark_congestion(Frame& frame) {
  if (be16(&frame[12]) != kIpv4 || (frame[15] & kEcnMask) == 0 || !strip_fcs(frame)) return false;
  frame[15] |= kCongestionMark;
  put16(&frame[24], 0);
  put16(&frame[24], checksum(&frame[kIp], 20, 0));
  frame = with_fcs(std::move(frame));
  return true;
}

// Sum of the pseudo header of a packet of `protocol` with `length` bytes of it (RFC 9293 3.1, RFC 768).
inline uint32_t pseudo_sum(const Frame& frame, uint32_t protocol, size_t length) {
  uint32_t sum = protocol + static_cast<uint32_t>(length);
  for (size_t i = 26; i < 34; i += 2) sum += be16(&frame[i]);
  return sum;
}

// The answer to an ARP request, whatever address it asks for; nothing to other frames.
inline std::optional<Frame> arp_reply(const Frame& frame) {
  constexpr size_t kArpFrame = 42;
  if (be16(&frame[12]) != 0x0806 || frame.size() < kArpFrame || be16(&frame[20]) != 1) return std::nullopt;
  Frame reply(frame.begin(), frame.begin() + kArpFrame);
  std::copy(&frame[6], &frame[12], reply.begin());
  std::copy(kReceiverMac.begin(), kReceiverMac.end(), reply.begin() + 6);
  put16(&reply[20], 2);
  std::copy(kReceiverMac.begin(), kReceiverMac.end(), reply.begin() + 22);
  std::copy(&frame[38], &frame[42], reply.begin() + 28);  // the address that was asked for
  std::copy(&frame[22], &frame[32], reply.begin() + 32);
  return reply;
}

}  // namespace fadelink
