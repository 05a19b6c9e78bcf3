#pragma once
// One micro-batch as the model sees it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace kf {

/// Label of a position that is not counted.
inline constexpr std::int64_t kIgnore = -100;

struct Batch {
  at::Tensor tokens;                  // (B, T) int64
  at::Tensor labels;                  // (B, T) int64, already shifted; kIgnore = not counted
  at::Tensor doc_ids;                 // (B, T) int64, undefined where documents are not kept apart
  std::int64_t counted = 0;           // labels that are counted, known on the host
  std::vector<std::int64_t> samples;  // indices of the rows in the data set (in the concatenation, for mixtures)
};

}  // namespace kf
