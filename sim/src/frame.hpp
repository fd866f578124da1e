// An Ethernet frame as bytes, without preamble and frame check sequence unless said otherwise.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace fadelink {

using Frame = std::vector<uint8_t>;
using Picoseconds = uint64_t;
using Mac = std::array<uint8_t, 6>;

constexpr Picoseconds kMicrosecond = 1'000'000;
constexpr Picoseconds kSecond = 1'000'000'000'000;

// Preamble, frame check sequence and gap: what a frame takes on the wire beyond its bytes.
constexpr size_t kWireOverhead = 8 + 4 + 12;

inline uint32_t frame_check_sequence(const Frame& frame) {
  return static_cast<uint32_t>(crc32(0, frame.data(), static_cast<uInt>(frame.size())));
}

// Appends the frame check sequence, padding to the Ethernet minimum first.
inline Frame with_fcs(Frame frame) {
  if (frame.size() < 60) frame.resize(60, 0);
  const uint32_t fcs = frame_check_sequence(frame);
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<uint8_t>(fcs >> shift));
  return frame;
}

// Removes the frame check sequence; false if it is wrong or the frame too short to hold one.
inline bool strip_fcs(Frame& frame) {
  if (frame.size() < 64) return false;
  uint32_t fcs = 0;
  for (int i = 0; i < 4; i++) fcs |= uint32_t{frame[frame.size() - 4 + i]} << (8 * i);
  frame.resize(frame.size() - 4);
  return frame_check_sequence(frame) == fcs;
}

inline Mac parse_mac(const std::string& text) {
  Mac mac{};
  unsigned v[6];
  char rest;
  if (text.size() != 17 || std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", v, v + 1, v + 2, v + 3, v + 4,
                                       v + 5, &rest) != 6)
    throw std::invalid_argument("MAC address '" + text + "': expected six bytes as 02:fa:de:00:00:01");
  for (int i = 0; i < 6; i++) mac[i] = static_cast<uint8_t>(v[i]);
  if (mac[0] & 1) throw std::invalid_argument("MAC address '" + text + "': expected a unicast address");
  return mac;
}

inline std::string to_string(const Mac& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  return text;
}

inline uint64_t to_u64(const Mac& mac) {
  uint64_t value = 0;
  for (uint8_t byte : mac) value = value << 8 | byte;
  return value;
}

}  // namespace fadelink
