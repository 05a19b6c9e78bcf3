#pragma once
// An update of Lion (Chen et al. 2023, algorithm 2), for many weights at once.

#include <ATen/core/Tensor.h>

namespace kf {

/// One entry a weight in each list, changed in place, but for the gradients. Moments are fp32, weights and gradients fp32 or stored in 16
/// bits; the arithmetic is fp32.
struct LionLists {
  at::TensorList weights, gradients, m;
  at::TensorList values = {};  // what is to follow the weights in another type; an undefined entry for none, or no list
  at::Tensor factor = {};      // 0-dim fp32: gradients count times this; undefined for 1
};

struct LionNumbers {
  double lr = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
};

/// w = (1 - lr weight_decay) w - lr sign(beta1 m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g: on a CPU one pass over all weights
/// (rows_simd.cpp), elsewhere the plain twin. Where the sum is no number, its sign is 0. Without autograd.
void fused_lion(const LionLists& lists, const LionNumbers& numbers);
/// The same, by a pass an operation.
void plain_lion(const LionLists& lists, const LionNumbers& numbers);

}  // namespace kf
