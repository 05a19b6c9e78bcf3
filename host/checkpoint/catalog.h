#pragma once
// Which checkpoints lie in a folder, and what each says of itself, without its tensors.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

/// A folder step_N, or a named save.
struct CheckpointEntry {
  fs::path path;
  std::optional<std::int64_t> step, tokens;  // nothing where it cannot be read
  std::optional<double> eval_loss;           // of the last evaluation before it
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point saved;
  bool latest = false;  // what `latest` names
  std::string fault;    // why it cannot be used; "" where nothing speaks against it
};

/// How closely a checkpoint is looked at: state.json, job.toml and the sizes of all files, or every byte.
enum class Look { sizes, bytes };

/// Those in `where`, which is a checkpoint itself, a folder of them or the folder of a run; by step, then by name. Throws Code::checkpoint
/// where there is none.
std::vector<CheckpointEntry> checkpoints_in(const fs::path& where, Look look);

}  // namespace kf
