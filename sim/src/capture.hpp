// A pcap file of the frames of both directions, stamped with simulated time.
#pragma once

#include <pcap/pcap.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "frame.hpp"

namespace fadelink {

class Capture {
 public:
  explicit Capture(const std::string& path)
      : pcap_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65536, PCAP_TSTAMP_PRECISION_NANO)),
        dump_(pcap_dump_open(pcap_, path.c_str())) {
    if (dump_ == nullptr) throw std::runtime_error("capture file " + path + ": " + pcap_geterr(pcap_));
    // Without a buffer each write tells whether it is in the file.
    std::setvbuf(pcap_dump_file(dump_), nullptr, _IONBF, 0);
  }
  ~Capture() {
    pcap_dump_close(dump_);
    pcap_close(pcap_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // `frame` without its frame check sequence.
  void write(const Frame& frame, Picoseconds now) {
    pcap_pkthdr header{};
    header.ts.tv_sec = static_cast<time_t>(now / kSecond);
    header.ts.tv_usec = static_cast<suseconds_t>(now % kSecond / 1000);  // nanoseconds in such a file
    header.caplen = header.len = static_cast<bpf_u_int32>(frame.size());
    pcap_dump(reinterpret_cast<u_char*>(dump_), &header, frame.data());
    if (std::ferror(pcap_dump_file(dump_))) throw std::runtime_error(std::string("capture file: ") + std::strerror(errno));
  }

 private:
  pcap_t* pcap_;
  pcap_dumper_t* dump_;
};

}  // namespace fadelink
