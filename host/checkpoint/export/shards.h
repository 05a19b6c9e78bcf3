#pragma once
// Weights in as many safetensors files as a size of each allows, with the index that transformers reads.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/safetensors.h"
#include "core/fs.h"

namespace kf {

struct Shards {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  // of tensors
};

/// model.safetensors, or model-00001-of-0000N.safetensors with model.safetensors.index.json where the tensors have more than `most` bytes
/// together. A tensor that has more by itself gets a file of its own. One tensor is in memory at a time. Each file says `metadata`.
Shards write_shards(const fs::path& folder, const std::vector<LazyTensor>& tensors, std::uint64_t most,
                    const std::map<std::string, std::string>& metadata = {});

/// Whether `write_shards` wrote this file of weights, or index.
bool is_shard(const fs::path& file);
/// What the files of weights in `folder` say, where `write_shards` wrote them; nothing where there is none.
std::optional<std::map<std::string, std::string>> shard_metadata(const fs::path& folder);

}  // namespace kf
