#include "checkpoint/files/positioned_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // one pread() takes at most 2 GiB

}  // namespace

PositionedFile::PositionedFile(fs::path path) : path_(std::move(path)) {
  open(found_);
  size_ = found_.size;
}

Descriptor PositionedFile::open(Found& found) const {
  // Opening a pipe would wait for its writer.
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  KF_CHECK(file.get() >= 0 && ::fstat(file.get(), &status) == 0, Code::checkpoint, "cannot open {}: {}", path_, std::strerror(errno));
  KF_CHECK(S_ISREG(status.st_mode), Code::checkpoint, "{} is not a regular file", path_);
  found = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
  return file;
}

void PositionedFile::read(std::uint64_t offset, void* to, std::size_t size) const {
  Found now;
  const Descriptor file = open(now);
  KF_CHECK(now == found_, Code::checkpoint, "{} is another file than the one that was opened, or was cut short", path_);
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(file.get(), at, std::min(size, kMost), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got >= 0, Code::checkpoint, "cannot read {}: {}", path_, std::strerror(errno));
    KF_CHECK(got > 0, Code::checkpoint, "{} ends {} bytes too early", path_, size);
    at += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace kf
