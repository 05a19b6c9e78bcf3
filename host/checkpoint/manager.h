#pragma once
// The checkpoints of a run: step_N folders that appear whole or not at all, `latest`, retention. Nothing of what is in them.
//
// <dir>/step_N/model.safetensors      fp32 masters under their state-dict names; of more than one rank in parts (writer.h)
// <dir>/step_N/optimizer.safetensors  optimizer tensors, alike
// <dir>/step_N/state.json             step, tokens, RNG, what parts keep, integers of the optimizer, fingerprints, checksums of the files
// <dir>/step_N/job.toml               the resolved job
// <dir>/latest                        relative symbolic link, switched after the folder is durable

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/file_check.h"
#include "checkpoint/retention.h"
#include "core/fs.h"

namespace kf {

class CheckpointManager {
 public:
  explicit CheckpointManager(CheckpointOptions options);

  /// The folder of step_N, or of `name`. Throws Code::checkpoint for a name that would hide other things.
  fs::path place(std::int64_t step, const std::string& name = {}) const;
  /// Makes what is above such a folder, and removes there what killed processes left. Throws Code::checkpoint where something else has a
  /// named one's name.
  void make_room(const fs::path& place) const;
  /// Steps that will have to go once this state has been saved. May call a script.
  std::vector<std::int64_t> outdated_by(const CheckpointState& state) const;
  /// step_N is there: lets `latest` name it, and removes these.
  void publish(std::int64_t step, const std::vector<std::int64_t>& outdated) const;

  /// Removes in both places what should have gone with step_N but was still to be copied. May call a script.
  void tidy(std::int64_t step) const;

  /// The newest complete checkpoint (what `latest` names, else the highest complete step; one in options.mirror where that is of a higher
  /// step), or nothing where none was ever saved. Says in the log what it skipped and why. Throws Code::checkpoint when there are some, but
  /// none can be used.
  std::optional<fs::path> newest(const FileCheck& check = check_here) const;

  /// The step that `latest` names; nothing where it names none that is there.
  std::optional<std::int64_t> latest() const;

  const CheckpointOptions& options() const { return options_; }

 private:
  CheckpointOptions options_;
};

}  // namespace kf
