#include "report/read/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/plain_file.h"

namespace kf::report {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 22;
constexpr std::size_t kLongest = std::size_t{1} << 26;  // of a line
constexpr std::size_t kBefore = 256;                    // a row has the time in it: no two files agree here by chance

/// As many bytes as there are, up to `size`.
std::size_t read_at(int fd, char* to, std::size_t size, std::uint64_t offset, const fs::path& path) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::pread(fd, to + got, size - got, static_cast<off_t>(offset + got));
    KF_CHECK(n >= 0 || errno == EINTR, Code::other, "cannot read {}: {}", path, std::strerror(errno));
    if (n == 0) {
      break;
    }
    got += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return got;
}

}  // namespace

News LineFile::look() {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    file_ = Descriptor();
    end_ = offset_;
    return News::nothing;
  }
  KF_CHECK(fd >= 0, Code::other, "cannot read {}: {}", path_, std::strerror(errno));
  file_ = Descriptor(fd);
  struct stat status {};
  KF_CHECK(::fstat(fd, &status) == 0, Code::other, "cannot read {}: {}", path_, std::strerror(errno));
  KF_CHECK(S_ISREG(status.st_mode), Code::other, "cannot read {}: {}", path_, unlike_a_file(path_));
  const bool first = offset_ == 0;
  const bool other = device_ != status.st_dev || inode_ != status.st_ino;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  end_ = static_cast<std::uint64_t>(status.st_size);
  if (!first && (other || end_ < offset_ || !same_file())) {
    start_over();
    return News::again;
  }
  return end_ > offset_ ? News::more : News::nothing;
}

bool LineFile::same_file() const {
  std::string there(before_.size(), '\0');
  return read_at(file_.get(), there.data(), there.size(), offset_ - there.size(), path_) == there.size() && there == before_;
}

void LineFile::start_over() {
  offset_ = 0;
  before_.clear();
}

std::string_view LineFile::next() {
  for (std::size_t size = kChunk; offset_ < end_; size *= 4) {
    const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(size, end_ - offset_));
    buffer_.resize(most + kPadding);
    const std::size_t got = read_at(file_.get(), buffer_.data(), most, offset_, path_);
    const std::size_t newline = std::string_view(buffer_).substr(0, got).rfind('\n');
    if (newline != std::string_view::npos) {
      const std::string_view lines = std::string_view(buffer_).substr(0, newline + 1);
      const std::size_t kept = std::min(kBefore, lines.size());
      before_.assign(lines.substr(lines.size() - kept));
      offset_ += lines.size();
      return lines;
    }
    KF_CHECK(got < kLongest, Code::other, "{}: the line behind byte {} has more than {} bytes; such a file is none of a run", path_,
             offset_, kLongest);
    if (got < most || most == end_ - offset_) {
      return {};  // the last line has no end yet
    }
  }
  return {};
}

}  // namespace kf::report
