// PTP messages over Ethernet (IEEE 1588-2008, annex F), as a switch handles them.
#pragma once

#include "frame.hpp"

namespace fadelink {

inline bool is_ptp(const Frame& frame) { return frame.size() >= 14 + 34 && frame[12] == 0x88 && frame[13] == 0xF7; }

// Adds a time to the correction field of an event message with its frame check sequence, which becomes right again if it was; leaves others.
inline void correct_event_time(Frame& frame, Picoseconds time) {
  constexpr size_t kHeader = 14, kCorrection = kHeader + 8, kEvents = 4;
  if (!is_ptp(frame) || (frame[kHeader] & 15) >= kEvents) return;
  uint64_t correction = 0;
  for (size_t i = 0; i < 8; i++) correction = correction << 8 | frame[kCorrection + i];
  correction += (time << 16) / 1000;
  Frame body(frame);
  if (!strip_fcs(body)) return;
  for (size_t i = 8; i-- > 0; correction >>= 8) body[kCorrection + i] = static_cast<uint8_t>(correction);
  frame = with_fcs(std::move(body));
}

}  // namespace fadelink
