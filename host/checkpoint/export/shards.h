#pragma once
// Weights in as many safetensors files as a size of each allows, with the index that transformers reads.

#include <cstdint>
#include <vector>

#include "checkpoint/files/safetensors.h"
#include "core/fs.h"

namespace kf {

struct Shards {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  // of tensors
};

/// model.safetensors, or model-00001-of-0000N.safetensors with model.safetensors.index.json where the tensors have more than `most` bytes
/// together. A tensor that has more by itself gets a file of its own. One tensor is in memory at a time.
Shards write_shards(const fs::path& folder, const std::vector<LazyTensor>& tensors, std::uint64_t most);

/// Whether the folder holds what `write_shards` wrote.
bool holds_shards(const fs::path& folder);

}  // namespace kf
