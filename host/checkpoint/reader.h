#pragma once
// A checkpoint, open for reading.

#include <optional>
#include <string>

#include "checkpoint/averages.h"
#include "checkpoint/file_check.h"
#include "checkpoint/files/load_rules.h"
#include "checkpoint/files/stored_tensors.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/state_file.h"
#include "checkpoint/take_state.h"
#include "core/fs.h"
#include "model/model.h"
#include "optim/optimizer.h"

namespace kf {

/// Where a model's weights are, and what becomes of those that a source lacks.
struct WeightPlaces {
  VocabRows rows = {};
  std::string frozen_from = {};  // where frozen weights that a checkpoint leaves out come from; "": from where they came when it was saved
  Placements placements = own_placement;
  LoadRules rules = {};
  FileCheck check = check_here;  // of a checkpoint's files
};

/// Opening one is cheap: it reads state.json and job.toml and verifies these. What concerns tensors first has the files that hold them
/// checked, once, by every byte against their checksums. Everything here throws Code::checkpoint. One thread at a time.
class CheckpointReader {
 public:
  /// `checkpoint`: a step_N folder or a named one; `find_checkpoint` finds it. `check`: who reads the bytes (file_check.h).
  explicit CheckpointReader(fs::path checkpoint, FileCheck check = check_here);

  const fs::path& path() const { return path_; }
  const CheckpointState& state() const { return content_.state; }
  /// Whether frozen weights are not in it (checkpoint.save_frozen).
  bool leaves_out() const { return !content_.left_out.names.empty(); }

  /// By state-dict name, without what the checkpoint leaves out.
  const StoredTensors& weights() const;
  /// The optimizer's, SLOT.WEIGHT.
  const StoredTensors& moments() const;

  /// Weights alone, by the rules of `load_weights_from`, of each the part that lies here; those that the checkpoint leaves out come from
  /// where they came from first.
  void load_weights(Model& model, const WeightPlaces& places = {}, WeightKind kind = WeightKind::saved) const;
  /// Everything into live objects, and the random generator of the CPU, as far as `parts` says: what there is to be looked at is looked at
  /// before a weight is touched.
  void load(Model& model, Optimizer& optimizer, const WeightPlaces& places = {}, const StateRules& parts = {}) const;

 private:
  void load_saved(Model& model, const WeightPlaces& places) const;
  const StoredTensors& checked(std::optional<StoredTensors>& tensors, const char* file, const char* index) const;
  OptimizerState stored_moments(Model& model, const Optimizer& optimizer, const WeightPlaces& places) const;

  fs::path path_;
  StateFile content_;
  FileCheck check_;
  mutable std::optional<StoredTensors> weights_, moments_;  // once asked for: their files are checked
};

/// The checkpoint that a path stands for: itself, as it is, or the newest one in it or in its folder `checkpoints` whose files `check`
/// finds whole. Throws Code::checkpoint.
fs::path find_checkpoint(const fs::path& source, const FileCheck& check = check_here);

/// Weights alone (`checkpoint.init_from`): from a checkpoint (as `find_checkpoint` takes it), a Hugging Face folder or the name of a model
/// of the hub, a folder of torch.distributed.checkpoint, or a file (weights_file.h). Missing, extra and misshapen names are one error.
/// `kind` other than saved needs a checkpoint.
void load_weights(const fs::path& source, Model& model, const WeightPlaces& places = {}, WeightKind kind = WeightKind::saved);

}  // namespace kf
