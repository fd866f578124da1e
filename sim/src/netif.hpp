// The network interface at the far end of the link: a TAP, or a packet socket on a veth end.
#pragma once

#include <string>

#include "frame.hpp"

namespace fadelink {

// MTU that the longest frame of a protocol needs.
constexpr int kMtuFade10g = 8232 - 14, kMtuFade1 = 1048 - 14, kMtuUdp = 9000;

class NetInterface {
 public:
  // Opens `name`. An interface that is a TAP, or with `create` does not exist yet, is attached to as
  // its device side; any other, or with `packet_socket` every one, is used through a packet socket.
  // Throws with what to do, also if its MTU is less than `mtu`.
  NetInterface(const std::string& name, bool create, bool packet_socket, int mtu);
  ~NetInterface();
  NetInterface(const NetInterface&) = delete;
  NetInterface& operator=(const NetInterface&) = delete;

  // Reads one frame; false if none waits. Throws when the interface is gone.
  bool receive(Frame& frame);
  // Writes one frame; false if the kernel's queue is full.
  bool send(const Frame& frame);
  // Sleeps until a frame waits or the time is over.
  void wait(int milliseconds);

 private:
  std::string name_;
  int fd_ = -1;
};

}  // namespace fadelink
