#pragma once
// The labels of multi-token prediction.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "data/sequence/batch.h"

namespace kf {

struct SequencePart;

/// Labels (B, T) of depth k >= 1, which predicts the token after i + k from position i: the labels moved k places to the left, kIgnore
/// where the row ends before or position i + k belongs to another document.
at::Tensor labels_ahead(const Batch& batch, std::int64_t k);
/// The same (B, T) of a rank's positions, also where position i + k is another rank's.
at::Tensor labels_ahead(const SequencePart& part, std::int64_t k);

/// Labels that count over the depths 1 .. `depths` of all micro-batches; on the host, where batches are made.
std::int64_t count_ahead(const std::vector<Batch>& batches, std::int64_t depths);

}  // namespace kf
