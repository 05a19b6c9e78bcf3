#pragma once
// The norm by rows, for tensors: what the functions of the graph in fused.cpp are made of.

#include <ATen/core/Tensor.h>

#include "kernels/layer_norm/layer_norm.h"

namespace kf {

struct RowLayerNorm {
  at::Tensor sum;         // x + branch; undefined without one
  at::Tensor norm;        // (.., C)
  at::Tensor statistics;  // (rows, 2) fp32: mean and 1 / sqrt(var + eps)
};
RowLayerNorm row_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps);

/// Which gradients are asked for.
struct LayerNormWants {
  bool x = false, factor = false, bias = false;
};

struct RowLayerNormGradients {
  at::Tensor x;             // with what `beside` adds to it; undefined if not wanted
  at::Tensor factor, bias;  // likewise, fp32
};
/// Of the norm of h, given the gradient of that and, where defined, what else reaches h.
RowLayerNormGradients row_layer_norm_gradients(const at::Tensor& h, const at::Tensor& gradient, const at::Tensor& beside,
                                               const at::Tensor& statistics, const at::Tensor& factor, const LayerNormWants& wants);

}  // namespace kf
