#include "data/cache/inventory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "data/cache/lock.h"
#include "data/cache/manifest.h"

namespace kf::cache {
namespace {

constexpr std::size_t kKeySize = 32;

/// Alone with a file, unless another one holds it.
class Alone {
 public:
  Alone(const fs::path& file, int flags) : fd_(::open(file.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0 && (errno == EACCES || errno == EROFS)) {
      fd_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);  // enough but on NFS
    }
    held_ = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
    missing_ = fd_ < 0 && errno == ENOENT;
  }
  ~Alone() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  bool held() const { return held_; }
  bool missing() const { return missing_; }

 private:
  int fd_;
  bool held_ = false;
  bool missing_ = false;
};

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code gone;  // a builder may be at work
  for (fs::recursive_directory_iterator it(folder, gone), end; !gone && it != end; it.increment(gone)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) {
      bytes += static_cast<std::int64_t>(it->file_size(ignored));
    }
  }
  return bytes;
}

std::chrono::system_clock::time_point changed(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::chrono::system_clock::from_time_t(info.st_mtim.tv_sec)
                                          : std::chrono::system_clock::time_point();
}

std::string origin_of(const Manifest& manifest) {
  const std::vector<KeySource>& sources = manifest.parts.sources;
  const std::string more = sources.size() > 1 ? format(" and {} more", sources.size() - 1) : "";
  return format("{}{}, {}", sources.empty() ? "nothing" : sources.front().name, more, manifest.parts.tokenizer_description);
}

fs::path lock_of(const CacheEntry& entry) { return entry.folder.parent_path() / (entry.key + ".lock"); }

bool is_used(const fs::path& lock) {
  const Alone alone(lock, O_RDWR);
  return !alone.held() && !alone.missing();
}

/// `name` is KEY, KEY.part or, where a removal was killed, KEY.removed.
std::optional<CacheEntry> entry_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  CacheEntry entry;
  entry.key = name.substr(0, kKeySize);
  entry.folder = folder;
  const std::string rest = name.substr(entry.key.size());
  const bool is_key = entry.key.size() == kKeySize && entry.key.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_key || !(rest.empty() || rest == ".part" || rest == ".removed")) {
    return std::nullopt;
  }
  const fs::path manifest = folder / "cache.json";
  std::error_code missing;
  entry.finished = rest.empty() && fs::is_regular_file(manifest, missing);
  entry.bytes = bytes_below(folder);
  entry.used = changed(entry.finished ? manifest : folder);
  entry.in_use = rest != ".removed" && is_used(entry.finished ? manifest : lock_of(entry));
  if (entry.finished) {
    try {
      const Manifest what = manifest_from_json(read_file(manifest), manifest);
      entry.tokens = what.counts.tokens;
      entry.from = origin_of(what);
    } catch (const Error&) {
      entry.from = "a damaged cache.json";
    }
  } else if (missing == std::errc::permission_denied) {
    entry.from = "may not be read";
  } else {
    entry.from = rest == ".removed" ? "half removed" : "not finished";
  }
  return entry;
}

}  // namespace

InUse::InUse(const fs::path& folder) : fd_(::open((folder / "cache.json").c_str(), O_RDONLY | O_CLOEXEC)) {
  KF_CHECK(fd_ >= 0, Code::data, "cannot read {}: {}", folder / "cache.json", std::strerror(errno));
  // Who lists caches is alone with each for a moment, who removes one until it is gone. Without locks nothing is known of others.
  while (::flock(fd_, LOCK_SH) != 0 && errno == EINTR) {
  }
  if (!is_file(fd_, folder / "cache.json")) {
    ::close(fd_);
    fail(Code::data, "{} was removed while it was opened, as kf-host data cache prune does", folder);
  }
  ::futimens(fd_, nullptr);  // another one's cache may stay without a time
}

InUse::~InUse() { ::close(fd_); }

std::vector<CacheEntry> caches_in(const fs::path& dir) {
  std::vector<CacheEntry> out;
  std::error_code error;
  fs::directory_iterator all(dir, error);
  KF_CHECK(!error, Code::data, "cannot read the folder of caches {}: {}", dir, error.message());
  for (const fs::directory_entry& at : all) {
    std::error_code ignored;
    if (at.is_directory(ignored) && !at.is_symlink(ignored)) {
      if (std::optional<CacheEntry> entry = entry_of(at.path())) {
        out.push_back(std::move(*entry));
      }
    }
  }
  std::sort(out.begin(), out.end(), [](const CacheEntry& a, const CacheEntry& b) { return a.used > b.used; });
  return out;
}

bool remove_cache(const CacheEntry& entry) {
  const Alone alone(entry.finished ? entry.folder / "cache.json" : lock_of(entry), entry.finished ? O_RDWR : O_RDWR | O_CREAT);
  if (!alone.held()) {
    return alone.missing();
  }
  std::error_code error;
  fs::path gone = entry.folder;
  if (gone.extension() != ".removed") {
    gone = entry.folder.parent_path() / (entry.key + ".removed");
    fs::remove_all(gone, error);
    fs::rename(entry.folder, gone, error);  // at once: nobody sees half of it
  }
  if (!error) {
    fs::remove_all(gone, error);
  }
  KF_CHECK(!error, Code::data, "cannot remove {}: {}", gone, error.message());
  if (!entry.finished) {
    fs::remove(lock_of(entry), error);  // a builder that waits for it notices
  }
  return true;
}

}  // namespace kf::cache
