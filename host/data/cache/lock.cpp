#include "data/cache/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/log.h"

namespace kf::cache {

FileLock::FileLock(const fs::path& file, const std::string& busy) : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  KF_CHECK(fd_ >= 0, Code::data, "cannot open {}: {}; set data.cache_dir to a folder that can be written to", file, std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    return;
  }
  if (errno == EWOULDBLOCK) {
    log::info("{}", busy);
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) {
        break;
      }
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      return;
    }
  }
  const std::string reason = std::strerror(errno);
  ::close(fd_);
  fail(Code::data, "cannot lock {}: {}; set data.cache_dir to a folder on another file system", file, reason);
}

bool FileLock::is_free(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT;
  }
  const bool free = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return free;
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace kf::cache
