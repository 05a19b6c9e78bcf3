#pragma once
// Rotary position embedding (Su et al. 2021), half-rotation layout: component i is paired with i + D/2, as in Llama checkpoints on Hugging
// Face.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

class Rope {
 public:
  /// Tables for positions 0 .. max_seq_len - 1; angle = position * theta^(-2i/D). head_dim is even.
  Rope(std::int64_t head_dim, std::int64_t max_seq_len, double theta);

  /// x (B, H, T, D) at positions `first` .. `first` + T - 1 -> the same shape and type; the arithmetic is fp32.
  at::Tensor rotate(const at::Tensor& x, std::int64_t first) const;

 private:
  at::Tensor cos_;  // (max_seq_len, D/2) fp32
  at::Tensor sin_;  // (max_seq_len, D/2) fp32
};

}  // namespace kf
