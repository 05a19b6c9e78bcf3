#pragma once
// The loss of a head by chunks of positions: what the kernel and its form over ranks (train/step/divided_loss.h) have in common.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "kernels/linear_loss/linear_loss.h"
#include "kernels/linear_loss/output_head.h"

namespace kf {

/// fp32, or the type itself where it is wider (gradient checks run in double).
at::Tensor wide(const at::Tensor& x);

/// Logits of a chunk, and the way back through what has shaped them.
struct ChunkLogits {
  at::Tensor logits;    // (n, V), in fp32 unless the head's precision is `compute`
  at::Tensor slope;     // (n, V), of the cap; undefined where there is none, and without gradients
  at::ScalarType type;  // of the matrix product
  /// d / d logits, whose memory it takes -> d / d product in the type of the product. `scale`: the head's.
  at::Tensor back(const at::Tensor& d, double scale) const;
};

/// `product`: the head's, (n, V).
ChunkLogits chunk_logits(const at::Tensor& product, const OutputHead& head, bool gradients);

struct ChunkLoss {
  at::Tensor ce, z;      // 0-dim, factors applied
  at::Tensor d_product;  // (n, V), ChunkLogits::back of the gradient of ce + z; only with gradients
};

/// hidden (n, C), labels (n) -> the loss of these positions. None of the tensors carries a gradient.
using EvaluateChunk = std::function<ChunkLoss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, bool gradients)>;

/// The sums over hidden (N, C) and labels (N), `chunk` positions at a time, in order. Where a gradient is wanted, those of `hidden` and
/// `head.weight` are made on the way, and backward multiplies them; a second one throws Code::other.
LinearLoss linear_loss_by_chunks(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, std::int64_t chunk,
                                 const EvaluateChunk& evaluate);

}  // namespace kf
