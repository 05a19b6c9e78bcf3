#include "core/group_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

constexpr std::size_t kSideBySide = 24;  // the disk's journal takes all of them in one or two commits
constexpr std::size_t kMostWaiting = 256;

struct Waiting {
  std::mutex mutex;
  bool on = false;
  std::set<std::string> paths;  // absolute: the working folder may change
};

Waiting& waiting() {
  static Waiting instance;
  return instance;
}

std::string full_name(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

/// "" or why it could not be made durable. What is not there any more was moved or removed by its owner.
std::string sync_one(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return errno == ENOENT || errno == ENOTDIR ? "" : std::strerror(errno);
  }
  return ::fsync(file.get()) == 0 ? "" : std::strerror(errno);
}

/// Throws Code::other for the first that could not be.
void sync_all(const std::vector<std::string>& paths) {
  std::vector<std::string> faults(paths.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      faults[i] = sync_one(paths[i]);
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(kSideBySide, paths.size()); ++i) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    KF_CHECK(faults[i].empty(), Code::other, "cannot make {} durable: {}", paths[i], faults[i]);
  }
}

}  // namespace

GroupSync::GroupSync() {
  Waiting& all = waiting();
  const std::lock_guard lock(all.mutex);
  KF_CHECK(!all.on, Code::other, "files are grouped for the disk already");
  all.on = true;
}

GroupSync::~GroupSync() {
  {
    Waiting& all = waiting();
    const std::lock_guard lock(all.mutex);
    all.on = false;  // before the flush: what comes behind it is made durable by who writes it
  }
  try {
    flush();
  } catch (const std::exception& fault) {
    log::warn("{}", fault.what());
  }
}

void GroupSync::flush() {
  std::vector<std::string> paths;
  {
    Waiting& all = waiting();
    const std::lock_guard lock(all.mutex);
    paths.assign(all.paths.begin(), all.paths.end());
    all.paths.clear();
  }
  sync_all(paths);
}

bool GroupSync::takes(const fs::path& path) {
  bool full = false;
  {
    Waiting& all = waiting();
    const std::lock_guard lock(all.mutex);
    if (!all.on) {
      return false;
    }
    all.paths.insert(full_name(path));
    full = all.paths.size() >= kMostWaiting;
  }
  if (full) {
    flush();
  }
  return true;
}

void GroupSync::moved(const fs::path& from, const fs::path& to) {
  Waiting& all = waiting();
  const std::lock_guard lock(all.mutex);
  const std::string before = full_name(from), now = full_name(to);
  std::set<std::string> paths;
  for (const std::string& path : all.paths) {
    const bool inside = path.starts_with(before) && (path.size() == before.size() || path[before.size()] == '/');
    paths.insert(inside ? now + path.substr(before.size()) : path);
  }
  all.paths = std::move(paths);
}

}  // namespace kf
