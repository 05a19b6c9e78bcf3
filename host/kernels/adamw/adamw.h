#pragma once
// An update of AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), for many weights at once.

#include <ATen/core/Tensor.h>

#include <vector>

namespace kf {

/// One entry a weight in each list, fp32 or stored in 16 bits (the arithmetic is fp32), and changed in place, but for the gradients.
/// `steps` are 0-dim and count this update already; weights may have begun at different ones.
struct AdamWLists {
  at::TensorList weights, gradients, m, v, steps;
  at::TensorList values = {};  // what is to follow the weights in another type; an undefined entry for none, or no list
  at::Tensor factor = {};      // 0-dim fp32: gradients count times this; undefined for 1. They may be multiplied in place
  at::Tensor ok = {};          // 0-dim fp32: where it is 0, nothing moves, whatever the gradients hold; undefined for 1
};

struct AdamWNumbers {
  double lr = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double eps_root = 0;    // m / (sqrt(v + eps_root) + eps)
  bool nesterov = false;  // numerator beta1 m_t / (1 - beta1^(t+1)) + (1 - beta1) g / (1 - beta1^t) (Dozat 2016)
};

/// One pass over all weights: on a CPU by rows_simd.cpp, elsewhere by LibTorch's kernel; eps_root and nesterov, which that does not have,
/// take the plain twin there. Without autograd.
void fused_adamw(const AdamWLists& lists, const AdamWNumbers& numbers);
/// The same, one weight after the other; waits for `ok`.
void plain_adamw(const AdamWLists& lists, const AdamWNumbers& numbers);

/// Of fp32 lists: moves the moments alone and returns the directions m / (sqrt(v) + eps), both corrected for their bias.
std::vector<at::Tensor> adamw_directions(const AdamWLists& lists, const AdamWNumbers& numbers);
/// w *= 1 - lr * weight_decay (decoupled, Loshchilov and Hutter 2019).
void decay_weights(at::TensorList weights, double lr, double weight_decay);
/// 1 - beta^step, 0-dim double on the step's device: no wait for it, and fp32 would lose digits.
at::Tensor bias_correction(double beta, const at::Tensor& step);

}  // namespace kf
