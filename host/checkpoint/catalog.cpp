#include "checkpoint/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/file_check.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

bool is_checkpoint(const fs::directory_entry& entry) {
  std::error_code ignored;
  const std::string name = entry.path().filename().string();
  return !entry.is_symlink(ignored) && entry.is_directory(ignored) && name.front() != '.' &&
         (step_of(name) || path_exists(entry.path() / kStateFile));
}

std::vector<fs::path> folders_in(const fs::path& where) {
  if (path_exists(where / kStateFile)) {
    return {where};
  }
  std::error_code ignored;
  const fs::path dir = fs::is_directory(where / "checkpoints", ignored) ? where / "checkpoints" : where;
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    if (is_checkpoint(entry)) {
      out.push_back(entry.path());
    }
  }
  return out;
}

std::chrono::system_clock::time_point time_of(const fs::path& folder) {
  struct stat found {};
  const std::string file = (folder / kStateFile).string();
  const bool there = ::stat(file.c_str(), &found) == 0 || ::stat(folder.c_str(), &found) == 0;
  return std::chrono::system_clock::from_time_t(there ? found.st_mtime : 0);
}

std::uint64_t bytes_of(const fs::path& folder) {
  std::uint64_t sum = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, ignored)) {
    const std::uintmax_t size = entry.is_regular_file(ignored) ? entry.file_size(ignored) : 0;
    sum += size == static_cast<std::uintmax_t>(-1) ? 0 : size;
  }
  return sum;
}

std::optional<double> eval_loss(const config::Table& values) {
  const config::Node& eval = value_at(values, kEval);
  const config::Node* const loss = eval.table() != nullptr ? eval.table()->find("loss") : nullptr;
  const auto* const number = loss != nullptr ? std::get_if<double>(&loss->value) : nullptr;
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

CheckpointEntry entry_of(const fs::path& folder, Look look) {
  CheckpointEntry out;
  out.path = folder;
  out.bytes = bytes_of(folder);
  out.saved = time_of(folder);
  std::error_code ignored;
  out.latest = fs::equivalent(folder.parent_path() / "latest", folder, ignored);
  try {
    const StateFile content = read_state(folder);
    out.step = content.state.run.step;
    out.tokens = content.state.run.tokens;
    out.eval_loss = eval_loss(content.state.values);
    look == Look::sizes ? check_sizes(folder, content.files) : check_here(folder, content.files);
  } catch (const std::exception& e) {
    out.fault = e.what();
  }
  return out;
}

}  // namespace

std::vector<CheckpointEntry> checkpoints_in(const fs::path& where, Look look) {
  return as_checkpoint_error([&] {
    KF_CHECK(path_exists(where), Code::checkpoint, "{} does not exist", where);
    KF_CHECK(fs::is_directory(where), Code::checkpoint, "{} is no folder; `kf-host checkpoint info` describes a file", where);
    std::vector<CheckpointEntry> out;
    for (const fs::path& folder : folders_in(where)) {
      out.push_back(entry_of(folder, look));
    }
    KF_CHECK(!out.empty(), Code::checkpoint, "{} is no checkpoint, and none lies in it or in its folder 'checkpoints'", where);
    const auto order = [](const CheckpointEntry& entry) {
      const std::string name = entry.path.filename().string();
      return std::tuple(entry.step.value_or(step_of(name).value_or(-1)), name);
    };
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
    return out;
  });
}

}  // namespace kf
