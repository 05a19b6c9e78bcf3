#pragma once
// A disk that is full from some point on, for tests.

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <stdexcept>

namespace kf::test {

/// While it stands, no file of this process grows beyond `bytes`: a write takes what still fits, and then fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uintmax_t bytes) {
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) {
      throw std::runtime_error("getrlimit(RLIMIT_FSIZE) failed");
    }
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{static_cast<rlim_t>(bytes), before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) {
      throw std::runtime_error("setrlimit(RLIMIT_FSIZE) failed");
    }
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

}  // namespace kf::test
