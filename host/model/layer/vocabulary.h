#pragma once
// A table of vectors whose rows are divided over ranks (Shoeybi et al. 2019, section 3).

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/layer/tensor_ranks.h"

namespace kf {

class Model;
class World;

/// tokens (B, T) int64 -> their rows of the table as they lie between layers, (B, T or own rows, C). `part` (V / size, C): this rank's
/// rows, in order of ranks. The row `pad` gets no gradient; -1 for none.
at::Tensor embedded(const at::Tensor& part, const at::Tensor& tokens, std::int64_t pad, const TensorRanks& ranks,
                    const ForwardContext& context);

/// Over whom the rows of the model's embedding and head are divided; null where they lie here.
Group* vocabulary_ranks(Model& model, const World& world);

}  // namespace kf
