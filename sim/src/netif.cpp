#include "netif.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace fadelink {
namespace {

constexpr int kMtu = 9000;          // of a TAP that is made here
constexpr size_t kLongestFrame = 65536;

[[noreturn]] void fail(const std::string& what, const std::string& hint) {
  const int error = errno;
  std::string message = what + ": " + std::strerror(error);
  if (error == EPERM || error == EACCES) message += "; run it as root or give it CAP_NET_ADMIN and CAP_NET_RAW";
  else if (!hint.empty()) message += "; " + hint;
  throw std::runtime_error(message);
}

struct Socket {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ~Socket() { close(fd); }
};

ifreq request(const std::string& name) {
  ifreq r{};
  if (name.empty() || name.size() >= IFNAMSIZ)
    throw std::invalid_argument("interface '" + name + "': expected a name of 1 to 15 characters");
  std::memcpy(r.ifr_name, name.c_str(), name.size());
  return r;
}

int open_tap(const std::string& name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) fail("/dev/net/tun", "is the tun driver loaded?");
  ifreq r = request(name);
  r.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(fd, TUNSETIFF, &r) < 0) fail("TAP " + name, "is another program attached to it?");
  return fd;
}

void bring_up(const std::string& name) {
  const Socket s;
  ifreq r = request(name);
  r.ifr_mtu = kMtu;
  if (ioctl(s.fd, SIOCSIFMTU, &r) < 0) fail("MTU of " + name, "");
  if (ioctl(s.fd, SIOCGIFFLAGS, &r) < 0) fail("flags of " + name, "");
  r.ifr_flags |= IFF_UP;
  if (ioctl(s.fd, SIOCSIFFLAGS, &r) < 0) fail("setting " + name + " up", "");
}

void check_ready(const std::string& name, int mtu) {
  const Socket s;
  ifreq r = request(name);
  if (ioctl(s.fd, SIOCGIFFLAGS, &r) < 0) fail("flags of " + name, "");
  if (!(r.ifr_flags & IFF_UP))
    throw std::runtime_error("interface " + name + " is down; set it up: ip link set " + name + " up");
  if (ioctl(s.fd, SIOCGIFMTU, &r) < 0) fail("MTU of " + name, "");
  if (r.ifr_mtu < mtu)
    throw std::runtime_error("interface " + name + " has MTU " + std::to_string(r.ifr_mtu) + ", expected at least " +
                             std::to_string(mtu) + " for data frames: ip link set " + name + " mtu 9000");
}

int open_packet(const std::string& name) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("packet socket", "");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = address.sll_ifindex;
  promiscuous.mr_type = PACKET_MR_PROMISC;
  const int one = 1, buffer = 8 << 20;
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) < 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) < 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 ||
      setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0)
    fail("packet socket on " + name, "");
  return fd;
}

}  // namespace

NetInterface::NetInterface(const std::string& name, bool create, bool packet_socket, int mtu) : name_(name) {
  request(name);
  const bool exists = if_nametoindex(name.c_str()) != 0;
  if (!exists && !create)
    throw std::runtime_error("interface " + name + " does not exist; make it, or let this program make a TAP with "
                             "--create-tap");
  if (!exists) {
    fd_ = open_tap(name);
    bring_up(name);
  } else if (!packet_socket && std::filesystem::exists("/sys/class/net/" + name + "/tun_flags")) {
    fd_ = open_tap(name);
    check_ready(name, mtu);
  } else {
    check_ready(name, mtu);
    fd_ = open_packet(name);
  }
}

NetInterface::~NetInterface() { close(fd_); }

bool NetInterface::receive(Frame& frame) {
  frame.resize(kLongestFrame);
  const ssize_t n = read(fd_, frame.data(), frame.size());
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR || errno == ENETDOWN) return false;
    fail("interface " + name_, "is it still there and up?");
  }
  frame.resize(static_cast<size_t>(n));
  return true;
}

bool NetInterface::send(const Frame& frame) {
  const ssize_t n = write(fd_, frame.data(), frame.size());
  if (n >= 0) return true;
  // An interface that is down is a cable that is out.
  if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR || errno == ENETDOWN) return false;
  fail("interface " + name_, "is it still there and up?");
}

void NetInterface::wait(int milliseconds) {
  pollfd p{fd_, POLLIN, 0};
  poll(&p, 1, milliseconds);
}

}  // namespace fadelink
