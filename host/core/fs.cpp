#include "core/fs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "core/real_paths.h"
#include "core/shell_pattern.h"

namespace kf {
namespace {

/// Maps of which a reader behind a file's new end, which the kernel answers with SIGBUS, learns the name before the process ends.
struct Watched {
  std::atomic<const std::byte*> begin{nullptr};
  std::size_t size = 0;
  std::array<char, 512> path{};
};
std::array<Watched, 1024> watched_maps;  // more maps than that end by the signal alone
std::mutex watched_mutex;

struct sigaction before_bus_watch {};  // the handler that was there

/// Only calls that a signal's handler may make.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  for (const Watched& map : watched_maps) {
    const std::byte* const begin = map.begin.load(std::memory_order_acquire);
    if (begin != nullptr && at >= begin && at < begin + map.size) {
      constexpr std::string_view before = "kf-host: ";
      constexpr std::string_view after = " was cut off, or its disk failed, while it was read; run again when nothing writes to it\n";
      ssize_t written = ::write(STDERR_FILENO, before.data(), before.size());
      written = ::write(STDERR_FILENO, map.path.data(), std::strlen(map.path.data()));
      written = ::write(STDERR_FILENO, after.data(), after.size());
      ::_exit(written < 0 ? 1 : static_cast<int>(Code::data));
    }
  }
  ::sigaction(signal, &before_bus_watch, nullptr);  // none of ours: the access is tried again and ends the process as ever
}

void watch(const std::byte* begin, std::size_t size, const fs::path& path) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &before_bus_watch);
  });
  const std::lock_guard lock(watched_mutex);
  for (Watched& map : watched_maps) {
    if (map.begin.load(std::memory_order_relaxed) == nullptr) {
      map.size = size;
      map.path.fill('\0');
      path.native().copy(map.path.data(), map.path.size() - 1);
      map.begin.store(begin, std::memory_order_release);
      return;
    }
  }
}

void unwatch(const std::byte* begin) noexcept {
  const std::lock_guard lock(watched_mutex);
  for (Watched& map : watched_maps) {
    if (map.begin.load(std::memory_order_relaxed) == begin) {
      map.begin.store(nullptr, std::memory_order_release);
      return;
    }
  }
}

std::string reason() { return std::strerror(errno); }

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail(Code::other, "cannot write {}: {}", path, reason());
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// `{a,b}` spelled out, nested ones too: "x{1,2}" gives "x1" and "x2".
std::vector<std::string> expand_braces(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) {
    return {pattern};
  }
  int depth = 0;
  std::vector<std::size_t> commas;
  for (std::size_t i = open; i < pattern.size(); ++i) {
    if (pattern[i] == '{') {
      ++depth;
    } else if (pattern[i] == ',' && depth == 1) {
      commas.push_back(i);
    } else if (pattern[i] == '}' && --depth == 0) {
      std::vector<std::string> out;
      commas.push_back(i);
      std::size_t start = open + 1;
      for (const std::size_t comma : commas) {
        const std::string one = pattern.substr(0, open) + pattern.substr(start, comma - start) + pattern.substr(i + 1);
        for (std::string& expanded : expand_braces(one)) {
          out.push_back(std::move(expanded));
        }
        start = comma + 1;
      }
      return out;
    }
  }
  return {pattern};  // unbalanced: an ordinary character
}

std::vector<std::string> parts_of(std::string_view pattern) {
  std::vector<std::string> parts;
  for (std::string& part : split(pattern, '/')) {
    if (!part.empty() && part != ".") {
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

bool hidden_mismatch(std::string_view pattern, std::string_view name) { return name[0] == '.' && pattern[0] != '.'; }

/// Entries of a folder, sorted; an unreadable one is an error, not an empty one.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path());
  }
  if (error) {
    fail(Code::data, "cannot read the folder {}: {}", folder, error.message());
  }
  std::sort(out.begin(), out.end());
  return out;
}

enum class Entry { file, folder, broken_link, other };

Entry entry_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) {
    return Entry::file;
  }
  if (fs::is_directory(status)) {
    return Entry::folder;
  }
  if (fs::exists(status)) {
    return Entry::other;  // a pipe, a device
  }
  std::error_code ignored;
  if (fs::is_symlink(path, ignored)) {
    return Entry::broken_link;
  }
  KF_CHECK(status.type() == fs::file_type::not_found, Code::data, "cannot tell what {} is: {}", path, error.message());
  return Entry::other;  // it went away
}

class Walker {
 public:
  explicit Walker(std::vector<fs::path>& found) : found_(found) {}

  void walk(const fs::path& folder, const std::vector<std::string>& parts, std::size_t at) {
    if (parts[at] == "**") {
      if (at + 1 < parts.size()) {
        walk(folder, parts, at + 1);  // no folder in between
      }
      descend(folder, parts, at);
      return;
    }
    for (const fs::path& entry : entries(folder)) {
      const std::string name = entry.filename().string();
      if (hidden_mismatch(parts[at], name) || !matches_part(parts[at], name)) {
        continue;
      }
      const Entry kind = entry_of(entry);
      if (at + 1 == parts.size()) {
        add(entry, kind);
      } else if (kind == Entry::folder) {
        walk(entry, parts, at + 1);
      } else if (kind == Entry::broken_link) {
        say_lost(entry);
      }
    }
  }

 private:
  void descend(const fs::path& folder, const std::vector<std::string>& parts, std::size_t at) {
    for (const fs::path& entry : entries(folder)) {
      if (entry.filename().string()[0] == '.') {
        continue;
      }
      const Entry kind = entry_of(entry);
      if (kind == Entry::folder) {
        // A link to a folder above would go round for ever; each real folder is entered once.
        const std::string real = fs::canonical(entry).string();
        if (seen_.insert(real).second) {
          walk(entry, parts, at);
        }
      } else if (at + 1 == parts.size()) {
        add(entry, kind);
      } else if (kind == Entry::broken_link && !entry.has_extension()) {
        say_lost(entry);
      }
    }
  }

  void add(const fs::path& path, Entry kind) {
    if (kind == Entry::file || kind == Entry::broken_link) {
      found_.push_back(path);
    }
  }

  static void say_lost(const fs::path& path) { log::warn("{}; a folder behind it would have been searched", broken_link_fault(path)); }

  std::vector<fs::path>& found_;
  std::set<std::string> seen_;
};

}  // namespace

namespace {

constexpr std::int64_t kMostWhole = std::int64_t{4} << 30;

/// What is no regular file, for messages.
const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a folder";
  }
  if (S_ISFIFO(mode)) {
    return "a pipe";
  }
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/// Of a regular file that can be read whole.
std::int64_t checked_size(int file, const fs::path& path) {
  struct stat status {};
  KF_CHECK(::fstat(file, &status) == 0, Code::other, "cannot read {}: {}", path, reason());
  const mode_t mode = status.st_mode;
  KF_CHECK(S_ISREG(mode), Code::other, "cannot read {}: it is {}, not a regular file", path, kind_of(mode));
  KF_CHECK(status.st_size <= kMostWhole, Code::other, "cannot read {}: it has {} bytes, and files of this kind {} at most", path,
           grouped(status.st_size), grouped(kMostWhole));
  return status.st_size;
}

}  // namespace

std::string read_file(const fs::path& path) {
  // Opening a pipe would wait for its writer, and a device has no end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  KF_CHECK(file.get() >= 0, Code::other, "cannot read {}: {}", path, reason());
  const std::int64_t size = checked_size(file.get(), path);
  std::string content;
  content.reserve(static_cast<std::size_t>(size));
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got >= 0, Code::other, "cannot read {}: {}", path, reason());
    if (got == 0) {
      return content;
    }
    content.append(buffer.data(), static_cast<std::size_t>(got));
    KF_CHECK(content.size() <= static_cast<std::size_t>(kMostWhole), Code::other, "{} grows without an end while it is read", path);
  }
}

void sync_path(const fs::path& path) {
  if (GroupSync::takes(path)) {
    return;
  }
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  KF_CHECK(file.get() >= 0 && ::fsync(file.get()) == 0, Code::other, "cannot make {} durable: {}", path, reason());
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  try {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    KF_CHECK(file.get() >= 0, Code::other, "cannot write {}: {}", temporary, reason());
    write_all(file.get(), content, temporary);
    KF_CHECK(GroupSync::takes(path) || ::fsync(file.get()) == 0, Code::other, "cannot write {}: {}", temporary, reason());
    KF_CHECK(::rename(temporary.c_str(), path.c_str()) == 0, Code::other, "cannot rename {} to {}: {}", temporary, path, reason());
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  // Opening a pipe would wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  KF_CHECK(file.get() >= 0, Code::data, "cannot open {}: {}", path, reason());
  struct stat status {};
  KF_CHECK(::fstat(file.get(), &status) == 0, Code::data, "cannot open {}: {}", path, reason());
  KF_CHECK(S_ISREG(status.st_mode), Code::data, "{} is not a regular file", path);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) {
    return;
  }
  void* const map = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  KF_CHECK(map != MAP_FAILED, Code::data, "cannot map {} ({} bytes): {}", path, size_, reason());
  data_ = static_cast<const std::byte*>(map);
  watch(data_, size_, path_);
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void MappedFile::release() noexcept {
  if (data_ != nullptr) {
    unwatch(data_);
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

// Links to nothing are among what is found, so that whoever wants the file meets its absence; those that may have been folders are warned
// about.
std::vector<fs::path> glob(const fs::path& folder, std::string_view pattern) {
  std::vector<fs::path> found;
  for (const std::string& one : expand_braces(std::string(pattern))) {
    const std::vector<std::string> parts = parts_of(one);
    if (!parts.empty()) {
      Walker(found).walk(folder, parts, 0);
    }
  }
  std::sort(found.begin(), found.end());
  std::set<std::string> real;
  RealPaths paths;
  std::erase_if(found, [&](const fs::path& path) { return !real.insert(paths.of(path)).second; });
  return found;
}

}  // namespace kf
