#pragma once
// One micro-batch as the model sees it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/sequence/packing.h"

namespace kf {

struct Batch {
  at::Tensor tokens;                  // (B, T) int64
  at::Tensor labels;                  // (B, T) int64, already shifted; kIgnore = not counted
  at::Tensor doc_ids;                 // (B, T) int64, undefined where documents are not kept apart; kPadding behind the last document
  std::int64_t counted = 0;           // labels that are counted, known on the host
  std::vector<std::int64_t> samples;  // indices of the rows in the data set (in the concatenation, for mixtures)
  std::vector<std::int64_t> sources;  // of a mixture: which data set each row is from; else empty
};

}  // namespace kf
