#pragma once
// Attention of a rank's positions of a sequence over those of all ranks: context parallelism.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/kernels.h"
#include "model/layer/visibility.h"

namespace kf {

/// What is done to the scores of a layer.
struct SequenceScores {
  AttentionRules rules;
  Reach reach;
  at::Tensor slopes;                                          // (H) fp32 of alibi; undefined for none
  at::Tensor sinks;                                           // (H), undefined for none
  std::function<at::Tensor(const at::Tensor& weights)> drop;  // null for none
  const Kernels* kernels = nullptr;
};

/// A block of queries (B, H, T, D) at `queries` over a block of keys and values (B, Hkv, S, ..) at `keys`, without sinks.
AttentionInput block_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight, const SequenceScores& scores,
                           const Span& queries, const Span& keys);

/// q (B, H, T, D) of this rank's positions, k (B, Hkv, L, D) and v (B, Hkv, L, Dv) of all, in order -> (B, H, T, Dv). A piece of
/// neighbouring positions at a time, each over the keys up to its end.
at::Tensor attend_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visible,
                      const SequenceScores& scores);

/// The largest score of each head, (H) fp32, of the same queries and keys, as of `largest_scores`.
at::Tensor largest_of_all(const at::Tensor& q, const at::Tensor& k, const Visibility& visible, const SequenceScores& scores);

/// As `attend_all`, with k and v of this rank's positions: keys and values go round the ranks while attention over the ones before is
/// computed, and what comes of each is joined by its log-sum-exp (Liu et al. 2023, Ring Attention). Backward goes round once more, and
/// gradients of keys and values travel with them. Takes no dropout, and is differentiable once.
at::Tensor attend_ring(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::shared_ptr<const Visibility>& visible,
                       const SequenceScores& scores);

}  // namespace kf
