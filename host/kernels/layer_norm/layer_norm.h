#pragma once
// (x - mean) / sqrt(var + eps), times a factor, plus a bias (Ba et al. 2016, equation 4).

#include <ATen/core/Tensor.h>

#include "kernels/rms_norm/rms_norm.h"

namespace kf {

struct LayerNormWeights {
  at::Tensor factor, bias;  // (C) each, or undefined
};

/// x (.., C) -> (.., C) in the type of x; statistics and products in fp32 (double for double). Can be differentiated twice. On a CPU in
/// fp32 and bf16 by rows, each read once: one node of the graph, which keeps x in its own type and two numbers a row. Elsewhere the plain
/// twin.
at::Tensor fused_layer_norm(const at::Tensor& x, const LayerNormWeights& weights, double eps);
/// The same by LibTorch's, which keeps an fp32 copy of x.
at::Tensor plain_layer_norm(const at::Tensor& x, const LayerNormWeights& weights, double eps);

/// x, branch (.., C) of one type: their sum and its norm at once, and on the way back the gradients of both; to the last bit what one after
/// the other gives.
SumAndNorm fused_add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps);
SumAndNorm plain_add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps);

}  // namespace kf
