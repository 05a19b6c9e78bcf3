#pragma once
// Checkpoints of a run: step_N folders that appear whole or not at all, `latest`, retention, resume.
//
// <dir>/step_N/model.safetensors      fp32 masters under their state-dict names
// <dir>/step_N/optimizer.safetensors  optimizer tensors
// <dir>/step_N/state.json             step, tokens, RNG, hook states, integers of the optimizer, fingerprints, checksums of the files
// <dir>/step_N/job.toml               the resolved job
// <dir>/latest                        relative symbolic link, switched after the folder is durable

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/averages.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/left_out.h"
#include "config/tree/node.h"
#include "core/fs.h"
#include "metrics/run_state.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace kf {

/// Everything that a checkpoint holds besides the tensors of model and optimizer.
struct CheckpointState {
  RunState run;
  bool finished = false;  // the run had reached its end
  std::string data_fingerprint;
  std::map<std::string, config::Node> hooks;  // by hook name
  std::map<std::string, config::Node> parts;  // of other parts that keep something, by PartStates' keys
  config::Node train;                         // of the stepper: recent losses, loss scale; null where none was saved
  config::Node course;                        // of the run: phase, what hooks asked for; null where none was saved
  config::Node kernels;                       // which kernels the run computes with, so that a restart takes the same; may be null
  config::Node job;                           // table of every key and its value, to compare a later job with
  std::string folder;                         // the working folder, where relative paths of `job` start; "" where it was not saved
  config::Node code;                          // digests of the script's files, for the same; null where none was saved
  std::int64_t max_steps = 0;                 // of the run, as the schedule knows it; 0 where it was not saved
  std::string job_toml;                       // resolved job, loads back bit for bit
};

struct CheckpointOptions {
  fs::path dir;
  std::int64_t keep_last = 3;                      // <= 0 keeps all
  std::function<bool(std::int64_t)> keep_forever;  // milestones; may be empty
  std::string frozen_from = {};                    // leave frozen weights out, which are there; "" saves them
};

class CheckpointManager {
 public:
  explicit CheckpointManager(CheckpointOptions options);

  /// Saves step_N (or `name`, kept for ever and never `latest`). Atomic: temporary folder, fsync, rename, then `latest`, then retention.
  /// An undamaged folder of the same name and content is left as it is; any other checkpoint there is replaced in one move.
  /// Throws Code::checkpoint; older checkpoints, model and optimizer are untouched then.
  fs::path save(const CheckpointState& state, Model& model, Optimizer& optimizer, const std::string& name = {});

  /// The newest complete checkpoint (what `latest` names, else the highest complete step), or nothing where none was
  /// ever saved. Says in the log what it skipped and why. Throws Code::checkpoint when there are some, but none can be used.
  std::optional<fs::path> newest() const;

  /// The checkpoint that a path stands for: itself, or the newest one in it or in its folder `checkpoints`. Throws Code::checkpoint.
  static fs::path find(const fs::path& source);
  /// The state without tensors: cheap, for the decision how to go on.
  static CheckpointState peek(const fs::path& checkpoint);
  /// Loads everything into live objects, verifying checksums, and restores the RNG. Frozen weights that it leaves out come from
  /// `frozen_from`, or where that is "" from where they came when it was saved. Throws Code::checkpoint.
  static CheckpointState load(const fs::path& checkpoint, Model& model, Optimizer& optimizer, const std::string& frozen_from = {});
  /// Weights alone, from a checkpoint (as `find` takes it), a Hugging Face folder or the name of a model of the hub, or a .safetensors file
  /// (`checkpoint.init_from`). Missing, extra and misshapen names are one error. `kind` other than saved needs a checkpoint.
  static void load_weights(const fs::path& source, Model& model, const VocabRows& rows = {}, WeightKind kind = WeightKind::saved);

 private:
  CheckpointOptions options_;
  std::optional<LeftOut> left_out_;  // found once: frozen weights do not change
};

}  // namespace kf
