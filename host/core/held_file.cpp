#include "core/held_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

int open_behind(const fs::path& path) {
  const std::string fault = path_exists(path) ? unlike_a_file(path) : "";  // opening a pipe would wait for its other end
  KF_CHECK(fault.empty(), Code::other, "cannot write {}: {}", path, fault);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);  // RD: to mend it
  KF_CHECK(fd >= 0, Code::other, "cannot write {}: {}", path, std::strerror(errno));
  return fd;
}

}  // namespace

HeldFile::HeldFile(fs::path path) : path_(std::move(path)), fd_(std::in_place, open_behind(path_)) {}

void HeldFile::cut_torn() {
  if (torn_) {
    KF_CHECK(::ftruncate(fd_->get(), *torn_) == 0, Code::other, "cannot write {}: {}", path_, std::strerror(errno));
    torn_.reset();
  }
}

void HeldFile::append(std::string_view text) {
  cut_torn();
  const off_t begin = ::lseek(fd_->get(), 0, SEEK_END);
  KF_CHECK(begin >= 0, Code::other, "cannot write {}: {}", path_, std::strerror(errno));
  while (!text.empty()) {
    const ssize_t written = ::write(fd_->get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      const std::string reason = std::strerror(errno);
      torn_ = begin;
      if (::ftruncate(fd_->get(), begin) == 0) {
        torn_.reset();
      }
      fail(Code::other, "cannot write {}: {}", path_, reason);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void HeldFile::sync() { KF_CHECK(::fsync(fd_->get()) == 0, Code::other, "cannot write {}: {}", path_, std::strerror(errno)); }

std::string HeldFile::content() const {
  std::string out;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t got = ::pread(fd_->get(), buffer.data(), buffer.size(), static_cast<off_t>(out.size()));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got >= 0, Code::other, "cannot read {}: {}", path_, std::strerror(errno));
    if (got == 0) {
      return out;
    }
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string HeldFile::mend() {
  struct stat ours {};
  struct stat there {};
  cut_torn();
  KF_CHECK(::fstat(fd_->get(), &ours) == 0, Code::other, "cannot read {}: {}", path_, std::strerror(errno));
  if (::stat(path_.c_str(), &there) == 0 && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino) {
    return {};
  }
  std::string said = format("{} was deleted or moved while the run was on; it is written again, whole", path_);
  if (fs::exists(fs::symlink_status(path_))) {
    const fs::path aside = free_name(path_);
    fs::rename(path_, aside);
    said =
        format("{} was replaced while the run was on; the run's own is written again, whole, and the other file is {} now", path_, aside);
  }
  write_file_atomic(path_, content());
  fd_.emplace(open_behind(path_));
  return said;
}

void mend(HeldFile& file) {
  if (const std::string said = file.mend(); !said.empty()) {
    log::warn("{}", said);
  }
}

}  // namespace kf
