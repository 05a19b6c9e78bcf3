#pragma once
// The last matrix of a model, and what is done to its products.

#include <ATen/core/Tensor.h>

namespace kf {

/// For losses that never hold all logits: logits = cap(scale * h W^T).
struct OutputHead {
  /// cast: logits of the compute type, their softmax in fp32; compute: both in the compute type; fp32: both in fp32.
  enum class Precision { cast, compute, fp32 };
  at::Tensor weight;  // (V, C), as forward reads it
  double scale = 1;
  double softcap = 0;  // c tanh(logits / c); 0 for none
  Precision precision = Precision::cast;
};

/// h W^T in the type that the head's precision says: (.., C) -> (.., V).
at::Tensor head_product(const at::Tensor& hidden, const OutputHead& head);
/// cap(scale * logits) as a model's head applies it.
at::Tensor shape_logits(const at::Tensor& logits, const OutputHead& head);

}  // namespace kf
