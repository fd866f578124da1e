#include "ideal_udp.hpp"

#include <cstring>

#include "ip_frame.hpp"

namespace fadelink {

namespace {
constexpr uint8_t kProtocol = 17;
constexpr uint64_t kWarmup = 4;  // datagrams before the measurement
}

void IdealUdp::receive(const Frame& frame, Picoseconds now) {
  constexpr size_t kUdp = kIp + 20, kData = kUdp + 8, kHeader = 8;
  if (auto reply = arp_reply(frame)) {
    output_(std::move(*reply));
    return;
  }
  if (be16(&frame[12]) != kIpv4 || frame[23] != kProtocol) return;
  const size_t length = be16(&frame[kUdp + 4]);
  const bool summed = be16(&frame[kUdp + 6]) != 0;
  if (checksum(&frame[kIp], 20, 0) != 0 || kUdp + length > frame.size() || length < 8 + kHeader ||
      (summed && checksum(&frame[kUdp], length, pseudo_sum(frame, kProtocol, length)) != 0)) {
    result_.protocol_errors++;
    return;
  }
  const uint8_t* data = &frame[kData];
  const uint32_t counter = be32(data);
  const size_t words = be16(data + 4);
  if (data[7] & 1) {  // the end
    result_.complete = true;
    result_.protocol_errors += counter != result_.packets;
    return;
  }
  // What is missing was lost; nothing comes twice or late here.
  if (counter < next_) result_.duplicates++;
  next_ = counter + uint64_t{1};
  const uint64_t full = (payload_ - kHeader) / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t word;
    std::memcpy(&word, data + kHeader + 8 * i, 8);
    result_.wrong_words += word != counter * full + i;
  }
  result_.words += words;
  // From one full datagram to the last one.
  if (result_.packets++ == kWarmup) begin_ = now;
  if (result_.packets > kWarmup && kHeader + 8 * words + 8 > payload_) {
    result_.measured = now - begin_;
    result_.measured_packets = result_.packets - kWarmup - 1;
  }
}

}  // namespace fadelink
