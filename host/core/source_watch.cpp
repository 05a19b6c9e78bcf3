#include "core/source_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/immortal.h"
#include "core/log.h"
#include "core/text.h"

namespace kf {
namespace {

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool same_content(const struct stat& a, const struct stat& b) { return a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim); }

bool same_labels(const struct stat& a, const struct stat& b) {
  return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid && a.st_nlink == b.st_nlink;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// "1,000 bytes became 900", "it was written to".
std::string change_of(const struct stat& before, const struct stat& now) {
  if (before.st_size != now.st_size) {
    return format("{} bytes became {}", grouped(before.st_size), grouped(now.st_size));
  }
  return same_time(before.st_mtim, now.st_mtim) ? "it was changed and its time set back" : "it was written to";
}

}  // namespace

struct SourceWatch::File {
  fs::path path;  // absolute: a script may change the working folder
  Use use = Use::mapped;
  struct stat was {};
  bool said = false;
};

namespace {

std::mutex mutex;

/// "a, b, c and 5 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  return join(shown, ", ") + (names.size() > kShown ? format(" and {} more", names.size() - kShown) : "");
}

/// Every file that is watched; statics of others may outlive it.
template <class File>
std::set<File*>& watched() {
  static Immortal<std::set<File*>> all;
  return all.value;
}

}  // namespace

SourceWatch::SourceWatch(const fs::path& path, Use use) {
  auto file = std::make_unique<File>();
  std::error_code error;
  file->path = fs::absolute(path, error);
  file->use = use;
  if (error || ::stat(file->path.c_str(), &file->was) != 0) {
    return;
  }
  file_ = std::move(file);
  const std::lock_guard lock(mutex);
  watched<File>().insert(file_.get());
}

SourceWatch::~SourceWatch() {
  if (file_ != nullptr) {
    const std::lock_guard lock(mutex);
    watched<File>().erase(file_.get());
  }
}

SourceWatch::SourceWatch(SourceWatch&&) noexcept = default;

SourceWatch& SourceWatch::operator=(SourceWatch&& other) noexcept {
  std::swap(file_, other.file_);  // the other's destructor lets the old one go
  return *this;
}

std::vector<SourceWatch> watch_tokenizer(const fs::path& path) {
  std::vector<SourceWatch> out;
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    out.emplace_back(path, SourceWatch::Use::loaded);
  } else if (fs::is_directory(path, error)) {
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tekken.json", "tokenizer.model",
                             "vocab.json", "merges.txt"}) {
      if (fs::is_regular_file(path / name, error)) {
        out.emplace_back(path / name, SourceWatch::Use::loaded);
      }
    }
  }
  return out;
}

void verify_sources() {
  using File = SourceWatch::File;
  std::vector<std::string> changed;
  std::vector<std::string> other;  // loaded ones that changed, and all that are gone: said once
  const std::lock_guard lock(mutex);
  const auto note = [&](File& file, const std::string& what) {
    if (!file.said) {
      file.said = true;
      other.push_back(format("{} ({})", file.path.string(), what));
    }
  };
  for (File* const file : watched<File>()) {
    struct stat now {};
    const bool there = ::stat(file->path.c_str(), &now) == 0;
    if (there && same_file(file->was, now)) {
      if (same_content(file->was, now) && (same_time(file->was.st_ctim, now.st_ctim) || !same_labels(file->was, now))) {
        file->was = now;  // chmod, chown and links change the time of change, and the content not
      } else if (file->use == SourceWatch::Use::loaded) {
        note(*file, change_of(file->was, now));
      } else {
        changed.push_back(format("{} ({})", file->path.string(), change_of(file->was, now)));
      }
    } else {
      note(*file, there ? "replaced by another file" : format("removed: {}", std::strerror(errno)));
    }
  }
  std::sort(changed.begin(), changed.end());
  std::sort(other.begin(), other.end());
  if (!other.empty()) {
    log::warn("changed since the run opened it: {}; the run has it as it was, the next start will not", some_of(other));
  }
  KF_CHECK(changed.empty(), Code::data,
           "the data changed under the run: {}; no checkpoint is written, since what was learned since is not what it would say: put the "
           "file back and start again from the last checkpoint, or train on the new data under another run.name",
           some_of(changed));
}

}  // namespace kf
