#include "app/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace kf {

namespace {

/// Read-only where nothing can be written: a complete run on a read-only disk can still say that it is complete.
int open_lock(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  return fd < 0 && (errno == EROFS || errno == EACCES) ? ::open(file.c_str(), O_RDONLY | O_CLOEXEC) : fd;
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : fd_(open_lock(folder / ".lock")) {
  KF_CHECK(fd_ >= 0, Code::other, "cannot open {}: {}", folder / ".lock", std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    const std::string reason = std::strerror(errno);
    ::close(fd_);
    KF_CHECK(!taken, Code::other, "another process is running in {}; wait for it, or give this run another run.name", folder);
    fail(Code::other, "cannot lock {}: {}", folder / ".lock", reason);
  }
}

RunLock::~RunLock() { ::close(fd_); }

}  // namespace kf
