#pragma once
// Parts of scripts among ranks that divide the native layers (distributed.tp): every rank computes them whole.

#include <memory>

#include "model/layer/tensor_ranks.h"
#include "model/transformer/block.h"

namespace kf {

// Each gets all positions, alike on all ranks, and gives its rows where the sequence is split. On one rank, the part itself.
std::shared_ptr<Mlp> whole_part(std::shared_ptr<Mlp> part, const TensorRanks& ranks);
std::shared_ptr<Attention> whole_part(std::shared_ptr<Attention> part, const TensorRanks& ranks);
std::shared_ptr<Block> whole_part(std::shared_ptr<Block> part, const TensorRanks& ranks);

}  // namespace kf
