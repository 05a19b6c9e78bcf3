#include "data/file/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace kf {
namespace {

std::string what_it_is(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a folder";
  }
  return S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace

InputFile::InputFile(const fs::path& path) : path_(path) {
  // Opening a pipe would wait for its writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  KF_CHECK(fd_ >= 0, Code::data, "cannot open {}: {}", path, std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(fd_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    fail(Code::data, "{} is {}, not a regular file", path, known ? what_it_is(status.st_mode) : "unknown");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(fd_); }

std::size_t InputFile::read_at(std::int64_t offset, char* to, std::size_t size) const {
  const std::int64_t left = std::max<std::int64_t>(0, size_ - offset);
  size = std::min(size, static_cast<std::size_t>(left));
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd_, to + done, size - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got >= 0, Code::data, "cannot read {} at byte {}: {}", path_, offset, std::strerror(errno));
    KF_CHECK(got > 0, Code::data, "{} became shorter while it was read: it had {} bytes, now it ends at byte {}", path_, size_,
             offset + static_cast<std::int64_t>(done));
    done += static_cast<std::size_t>(got);
  }
  return done;
}

FileStream::FileStream(const fs::path& path, std::int64_t begin) : file_(path), begin_(begin), at_(begin) {}

std::size_t FileStream::read(char* to, std::size_t size) {
  const std::size_t got = file_.read_at(at_, to, size);
  at_ += static_cast<std::int64_t>(got);
  return got;
}

}  // namespace kf
