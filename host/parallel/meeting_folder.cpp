#include "parallel/meeting_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/plain_file.h"
#include "core/text.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kMost = 1 << 20;            // bytes of a file
constexpr std::chrono::seconds kUntilItIsGone{10};  // an earlier process of the same worker may be about to end

std::string file_of(std::int64_t worker) { return format("worker-{}", worker); }

/// A lock of the open file: it goes with the last descriptor of it, whatever ends the process.
struct flock whole_file() {
  struct flock out {};
  out.l_type = F_WRLCK;
  out.l_whence = SEEK_SET;
  return out;
}

}  // namespace

MeetingFolder::MeetingFolder(fs::path folder, std::int64_t worker) : MeetingPlace(worker), folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  KF_CHECK(!error, Code::communication, "the folder {}, where workers meet, cannot be made: {}", folder_, error.message());
  const fs::path path = file(file_of(worker));
  lock_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  KF_CHECK(lock_.get() >= 0, Code::communication, "cannot open {}: {}", path, std::strerror(errno));
  struct flock lock = whole_file();
  const Clock::time_point end = Clock::now() + kUntilItIsGone;
  while (::fcntl(lock_.get(), F_OFD_SETLK, &lock) != 0) {
    KF_CHECK(errno == EAGAIN || errno == EACCES, Code::communication, "{} cannot be locked: {}; name a folder on another disk (--meet)",
             path, std::strerror(errno));
    KF_CHECK(Clock::now() < end, Code::communication, "another process is worker {} of those that meet in {}: {}", worker, folder_,
             read(file_of(worker)).value_or(""));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const bool written = ::ftruncate(lock_.get(), 0) == 0 && ::pwrite(lock_.get(), self().process.data(), self().process.size(), 0) ==
                                                               static_cast<ssize_t>(self().process.size());
  KF_CHECK(written, Code::communication, "cannot write {}: {}", path, std::strerror(errno));
}

std::optional<std::string> MeetingFolder::read(const std::string& name) const {
  const fs::path path = file(name);
  return path_exists(path) ? std::optional(read_regular_file(path, kMost)) : std::nullopt;
}

/// What the first one who wrote it said.
std::string MeetingFolder::first(const std::string& name, const std::string& mine) {
  if (const std::optional<std::string> there = read(name)) {
    return *there;
  }
  const fs::path own = file(format("{}.of-{}", name, self().worker));
  write_file_atomic(own, mine);
  const int failed = ::link(own.c_str(), file(name).c_str()) == 0 ? 0 : errno;
  ::unlink(own.c_str());
  KF_CHECK(failed == 0 || failed == EEXIST, Code::communication, "cannot write {}: {}; name a folder on another disk (--meet)", file(name),
           std::strerror(failed));
  return failed == 0 ? mine : read(name).value_or(mine);
}

void MeetingFolder::put(const std::string& name, const std::string& text) { write_file_atomic(file(name), text); }

std::vector<std::string> MeetingFolder::names() const {
  std::vector<std::string> out;
  std::error_code gone;  // another worker may remove files meanwhile
  for (fs::directory_iterator entry(folder_, gone); !gone && entry != fs::directory_iterator(); entry.increment(gone)) {
    out.push_back(entry->path().filename().string());
  }
  return out;
}

void MeetingFolder::remove(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ::unlink(file(name).c_str());
  }
}

std::optional<std::string> MeetingFolder::process_of(std::int64_t worker) const {
  const std::string name = file_of(worker);
  const Descriptor other(::open(file(name).c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = whole_file();
  const bool held = other.get() >= 0 && ::fcntl(other.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return held ? std::optional(read(name).value_or("")) : std::nullopt;
}

}  // namespace kf
