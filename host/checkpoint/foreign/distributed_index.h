#pragma once
// The index of a folder of torch.distributed.checkpoint.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/files/pieces.h"
#include "core/fs.h"

namespace kf {

struct DistributedShard {
  std::string file;  // in the folder
  std::uint64_t begin = 0, size = 0;
  Range range;  // of the tensor
};

struct DistributedTensor {
  std::string name;  // in the index
  Shape shape;
  at::ScalarType type = at::kFloat;
  std::vector<DistributedShard> shards;  // together all of it, nothing twice
};

/// The model's tensors, by the names that the model gave them. Throws Code::checkpoint naming the file and what is wrong with it.
std::map<std::string, DistributedTensor> read_distributed_index(const fs::path& path);

}  // namespace kf
