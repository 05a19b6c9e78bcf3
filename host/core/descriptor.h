#pragma once
// An open file of the system.

#include <unistd.h>

namespace kf {

/// Closes what it was given at the end of its scope; -1, of an open that failed, is nothing to close.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace kf
