#include "data/cache/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/log.h"

namespace kf::cache {

FileLock::FileLock(const fs::path& file, const std::string& busy) {
  do {  // who held it may have removed the file, and a third process made another: only one of them is the lock
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    KF_CHECK(fd_ >= 0, Code::data, "cannot open {}: {}; set data.cache_dir to a folder that can be written to", file, std::strerror(errno));
    hold(file, busy);
  } while (!is_file(fd_, file));
}

void FileLock::hold(const fs::path& file, const std::string& busy) {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    return;
  }
  int error = errno;
  if (error == EWOULDBLOCK) {
    log::info("{}", busy);
    do {
      error = ::flock(fd_, LOCK_EX) == 0 ? 0 : errno;
    } while (error == EINTR);
  }
  if (error != 0) {
    ::close(fd_);
    fail(Code::data, "cannot lock {}: {}; set data.cache_dir to a folder on another file system", file, std::strerror(error));
  }
}

bool is_file(int fd, const fs::path& path) {
  struct stat mine {};
  struct stat there {};
  return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
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
