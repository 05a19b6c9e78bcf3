#pragma once
// Ports of this machine, for processes that meet over TCP.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace kf::test {

/// A port that somebody listens on, as long as this lives.
class TakenPort {
 public:
  TakenPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, at, size) != 0 || ::listen(fd_, 8) != 0 || ::getsockname(fd_, at, &size) != 0) {
      throw std::runtime_error("no free port");
    }
    number_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(fd_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::uint16_t number() const { return number_; }

 private:
  int fd_;
  std::uint16_t number_ = 0;
};

/// One that nobody listens on: taken and given back.
inline std::uint16_t free_port() { return TakenPort().number(); }

}  // namespace kf::test
