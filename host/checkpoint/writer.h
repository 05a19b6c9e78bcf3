#pragma once
// Writing a checkpoint: by one rank, or by many into one folder.
//
// One rank writes model.safetensors and optimizer.safetensors. Of N ranks each writes model-0000K-of-0000N.safetensors and
// optimizer-0000K-of-0000N.safetensors with the pieces that it was given, and the first one model.index.json and optimizer.index.json
// (piece_index.h). Nothing stands under the folder's final name before the data of every rank are durable.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files/piece_index.h"
#include "checkpoint/files/pieces.h"
#include "checkpoint/left_out.h"
#include "checkpoint/manager.h"
#include "checkpoint/state.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "parallel/group.h"

namespace kf {

/// What this rank writes. Of more than one rank each has other pieces, which together are every tensor once; the rest is the first rank's.
struct Snapshot {
  std::vector<TensorPiece> weights, moments;
  CheckpointState state;
  std::map<std::string, std::int64_t> optimizer_integers;
  std::map<std::string, double> optimizer_reals;
  std::string cpu_rng;  // bytes of LibTorch's default CPU generator
  LeftOut left_out;
};

/// A snapshot as it goes to the disk.
struct StagedSave {
  /// The tensors of a file of this rank's, and where each belongs.
  struct File {
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    PieceIndex index;  // its files have no name yet
  };
  File model, optimizer;
  Snapshot rest;                       // without pieces
  std::vector<std::int64_t> outdated;  // steps that go once this one is there, as CheckpointManager::outdated_by has it: the first rank's
};

class CheckpointWriter {
 public:
  /// `frozen_from`: where frozen weights come from, which are then left out; "" saves them. `checkpoints` outlives it.
  explicit CheckpointWriter(CheckpointManager& checkpoints, std::string frozen_from = {});

  /// All that lies here. Tensors are the live ones. Where ranks hold the same piece, the caller takes it out on all but one.
  Snapshot snapshot(const CheckpointState& state, Model& model, const Optimizer& optimizer, const Placements& placements = own_placement);
  /// Lays the pieces out in files. Tensors are still the live ones: whoever lets `write` run behind the training takes copies of them
  /// (HostCopies).
  static StagedSave stage(Snapshot snapshot);
  /// Saves step_N (or `name`, kept for ever and never `latest`), as every rank of `files` calls it. Atomic: temporary folder, fsync,
  /// rename, then `latest`, then retention. An undamaged folder of the same name and content is left as it is; any other checkpoint there
  /// is replaced in one move. Throws Code::checkpoint, on all ranks where one has failed; older checkpoints are untouched then. May be
  /// called by another thread than the rest: it calls nothing of a script, and `files` alone.
  fs::path write(const StagedSave& staged, Group& files, const std::string& name = {});

  /// The three in a row.
  fs::path save(const CheckpointState& state, Model& model, const Optimizer& optimizer, Group& files, const std::string& name = {});

 private:
  CheckpointManager& checkpoints_;
  std::string frozen_from_;
  std::optional<LeftOut> left_out_;  // found once: frozen weights do not change
};

}  // namespace kf
