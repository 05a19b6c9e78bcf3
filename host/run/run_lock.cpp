#include "run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "sweep/worker.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostOwner = 4096;

/// Read-only where nothing can be written: a complete run on a read-only disk can still say that it is complete.
int open_lock(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  return fd < 0 && (errno == EROFS || errno == EACCES) ? ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : fd;
}

/// Takes the lock; 0, or why not. Who only looks whether it is free (report/read/lock_look.h) has it for microseconds: a run has it for
/// good.
int lock_fault(int fd) {
  constexpr int kTries = 20;
  for (int left = kTries;; --left) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      return 0;
    }
    if (errno != EWOULDBLOCK || left == 0) {
      return errno;
    }
    ::usleep(5000);
  }
}

FileId id_of(const struct stat& status) { return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)}; }

fs::path owner_file(const fs::path& lock) { return lock.string() + ".owner"; }

/// False where the file is there already.
bool make_owner(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  KF_CHECK(fd >= 0 || errno == EEXIST, Code::other, "cannot make {}: {}", file, std::strerror(errno));
  if (fd < 0) {
    return false;
  }
  const std::string text = config::to_json(sweep::Worker::self().to_node()) + "\n";
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  KF_CHECK(written, Code::other, "cannot write {}", file);
  return true;
}

/// What is known of the owner; an empty one where the file says nothing.
sweep::Worker read_owner(const fs::path& file) {
  try {
    return sweep::Worker::from_node(config::parse_json(read_regular_file(file, kMostOwner), file.string()));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<FileId> file_id(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::optional(id_of(status)) : std::nullopt;
}

RunLock::RunLock(const fs::path& folder) : file_(folder / ".lock"), fd_(open_lock(file_)) {
  KF_CHECK(fd_.get() >= 0, Code::other, "cannot open {}: {}", file_, std::strerror(errno));
  const int error = lock_fault(fd_.get());
  if (error == 0) {
    return;
  }
  KF_CHECK(error != EWOULDBLOCK, Code::other, "another process is running in {}; wait for it, or give this run another run.name", folder);
  KF_CHECK(error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL, Code::other, "cannot lock {}: {}", file_,
           std::strerror(error));
  claim_owner(std::strerror(error));
}

void RunLock::claim_owner(const std::string& reason) {
  const fs::path file = owner_file(file_);
  if (!make_owner(file)) {
    const sweep::Worker other = read_owner(file);
    KF_CHECK(other.on_this_machine() && !other.process.alive(), Code::other,
             "another process is running in {}, or was killed there: {} names process {} of '{}'; wait for it, give this run another "
             "run.name, or "
             "remove that file when the process is gone",
             file_.parent_path(), file, static_cast<std::int64_t>(other.process.pid), other.machine);
    // Renamed first: of two that find a dead owner only one gets its file.
    const fs::path aside = file.string() + "." + std::to_string(::getpid());
    const bool renamed = ::rename(file.c_str(), aside.c_str()) == 0;
    const bool same = renamed && read_owner(aside).process.started == other.process.started;
    if (renamed && !same) {  // another one took it over in between
      ::rename(aside.c_str(), file.c_str());
    }
    KF_CHECK(same && make_owner(file), Code::other, "another process is running in {}; wait for it, or give this run another run.name",
             file_.parent_path());
    ::unlink(aside.c_str());
  }
  owner_ = true;
  log::info("{} cannot be locked ({}); while this run is on, {} keeps others out", file_, reason, file);
}

RunLock::~RunLock() {
  if (owner_) {
    ::unlink(owner_file(file_).c_str());
  }
}

bool RunLock::holds() const {
  struct stat mine {};
  return ::fstat(fd_.get(), &mine) == 0 && file_id(file_) == id_of(mine);
}

}  // namespace kf
