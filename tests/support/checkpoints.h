#pragma once
// Checkpoints of one rank in one line.

#include <string>
#include <utility>

#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "parallel/one_rank.h"

namespace kf::test {

inline fs::path save(CheckpointManager& checkpoints, const CheckpointState& state, Model& model, const Optimizer& optimizer,
                     const std::string& name = {}) {
  OneRank files;
  return CheckpointWriter(checkpoints).save(state, model, optimizer, files, name);
}

inline fs::path save(CheckpointOptions options, const CheckpointState& state, Model& model, const Optimizer& optimizer) {
  CheckpointManager checkpoints(std::move(options));
  return save(checkpoints, state, model, optimizer);
}

/// Everything into model and optimizer; what the checkpoint says beside.
inline CheckpointState load(const fs::path& checkpoint, Model& model, Optimizer& optimizer) {
  const CheckpointReader reader(checkpoint);
  reader.load(model, optimizer);
  return reader.state();
}

}  // namespace kf::test
