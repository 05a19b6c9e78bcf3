#pragma once
// Folders of torch.distributed.checkpoint: an index (.metadata) and files of shards (__0_0.distcp), each shard a small file of torch.save.
// KempnerForge writes such, one folder a pipeline stage (pp0, pp1, ...); its names of weights are ours.

#include <optional>

#include "checkpoint/files/weights.h"
#include "core/fs.h"

namespace kf {

/// The folder of that kind that a path stands for: itself, or `latest` in it, or the highest step_N.
std::optional<fs::path> find_distributed(const fs::path& source);

/// The tensors of the model in such a folder, of all stages: those under "model" where it holds more than that. Only the ranges that are
/// asked for are read, from however many shards they lie in. Throws Code::checkpoint.
NamedTensors open_distributed(const fs::path& folder);

}  // namespace kf
