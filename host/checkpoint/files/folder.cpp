#include "checkpoint/files/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/error.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr std::string_view kMark = ".tmp-", kOld = "-old";

fs::path temporary_beside(const fs::path& path, std::string_view suffix = "") {
  return path.parent_path() / ("." + path.filename().string() + std::string(kMark) + std::to_string(::getpid()) + std::string(suffix));
}

/// Puts `from` in the place of `to` at once; what was there is then at `from`. Where the file system cannot exchange, there is a moment
/// without `to`: a killed process leaves the older checkpoints and both folders, the older one under its temporary name.
void exchange(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  KF_CHECK(errno == EINVAL || errno == ENOSYS, Code::checkpoint, "cannot replace {}: {}", to, std::strerror(errno));
  const fs::path aside = temporary_beside(to, kOld);
  fs::rename(to, aside);
  fs::rename(from, to);
  fs::rename(aside, from);
}

}  // namespace

std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view kStep = "step_";
  if (!name.starts_with(kStep) || name.size() == kStep.size()) {
    return std::nullopt;
  }
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data() + kStep.size(), name.data() + name.size(), step);
  return error == std::errc{} && end == name.data() + name.size() && step >= 0 ? std::optional(step) : std::nullopt;
}

std::string save_name_problem(const std::string& name) {
  constexpr std::size_t kLongest = 100;  // with room for what stands before it while it is written
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '.'; });
  if (!plain || name.empty() || name.starts_with('.') || name.size() > kLongest) {
    return format("becomes a folder; use at most {} letters, digits, '_', '-' and '.', the first no '.'", kLongest);
  }
  return name == "latest" || step_of(name) ? "is what the run itself gives its checkpoints ('latest', 'step_N'); use another one" : "";
}

PendingFolder::PendingFolder(fs::path target) : target_(std::move(target)), path_(temporary_beside(target_)) {
  fs::remove_all(path_);
  fs::create_directories(path_);
}

PendingFolder::~PendingFolder() {
  std::error_code ignored;  // the next save tries again
  fs::remove_all(path_, ignored);
}

// While syncs are grouped, who promises more by the name than that it is there calls GroupSync::flush before.
void PendingFolder::commit() {
  sync_path(path_);
  if (fs::exists(fs::symlink_status(target_))) {
    exchange(path_, target_);  // the destructor removes what is now under the temporary name
  } else {
    fs::rename(path_, target_);
  }
  GroupSync::moved(path_, target_);
  sync_path(target_.parent_path());
}

void remove_folder(const fs::path& folder) {
  const fs::path doomed = temporary_beside(folder, kOld);
  fs::remove_all(doomed);
  fs::rename(folder, doomed);
  fs::remove_all(doomed);
}

void remove_leftovers(const fs::path& dir) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.find(kMark) != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) {
    fs::remove_all(path);
  }
}

void remove_abandoned(const fs::path& dir, std::string_view name) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string left = it->path().filename().string();
    const std::size_t mark = left.rfind(kMark);
    if (!left.starts_with('.') || mark == std::string::npos || mark == 0) {
      continue;
    }
    const std::string of = left.substr(1, mark - 1);
    std::string_view process = std::string_view(left).substr(mark + kMark.size());
    const bool older = process.ends_with(kOld);
    process.remove_suffix(older ? kOld.size() : 0);
    if ((name.empty() || of == name) && is_gone(process) && (!older || path_exists(dir / of))) {
      found.push_back(it->path());
    }
  }
  for (const fs::path& path : found) {
    fs::remove_all(path, error);  // what cannot be removed disturbs nobody
  }
}

void point_link(const fs::path& link, const std::string& target) {
  if (fs::is_directory(fs::symlink_status(link))) {
    const fs::path aside = free_name(link);  // a copy that followed links made a folder of it
    fs::rename(link, aside);
    log::warn("{} is a folder and not a link, so it was moved to {}", link, aside);
  }
  const fs::path temporary = temporary_beside(link);
  fs::remove(temporary);
  fs::create_symlink(target, temporary);
  fs::rename(temporary, link);
  sync_path(link.parent_path());
}

}  // namespace kf
