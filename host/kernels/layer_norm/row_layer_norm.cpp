#include "kernels/layer_norm/row_layer_norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/layer_norm/layer_norm_rows.h"
#include "kernels/rms_norm/row_norm.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

constexpr std::int64_t kGrain = 32768;  // numbers that are worth a thread

std::int64_t grain(std::int64_t width) { return std::max<std::int64_t>(1, kGrain / width); }

/// In fp32, one number after the other.
at::Tensor numbers_of(const at::Tensor& weight) { return weight.defined() ? weight.to(at::kFloat).contiguous() : weight; }

const float* data_of(const at::Tensor& numbers) { return numbers.defined() ? numbers.const_data_ptr<float>() : nullptr; }
float* room_of(const at::Tensor& numbers) { return numbers.defined() ? numbers.mutable_data_ptr<float>() : nullptr; }

simd::Rows rows_if(const at::Tensor& x) { return x.defined() ? *simd::rows_of(x) : simd::Rows(); }
at::Tensor in_rows_if(const at::Tensor& x) { return x.defined() ? simd::in_rows(x) : x; }

}  // namespace

RowLayerNorm row_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps) {
  const at::Tensor from = simd::in_rows(x), other = in_rows_if(branch);
  const at::Tensor factor = numbers_of(weights.factor), bias = numbers_of(weights.bias);
  const std::int64_t rows = simd::row_count(x);
  RowLayerNorm out{branch.defined() ? at::empty(x.sizes(), x.options()) : at::Tensor(), at::empty(x.sizes(), x.options()),
                   at::empty({rows, 2}, x.options().dtype(at::kFloat))};
  const simd::LayerNormForward of{rows_if(from),
                                  rows_if(other),
                                  rows_if(out.sum),
                                  rows_if(out.norm),
                                  reinterpret_cast<simd::RowStatistics*>(out.statistics.mutable_data_ptr<float>()),
                                  data_of(factor),
                                  data_of(bias),
                                  x.size(-1),
                                  static_cast<float>(eps),
                                  simd::is_bf16(x)};
  static const auto kernel = KF_SIMD_PICK(layer_norm_forward);
  simd::share(rows, grain(of.width), [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

RowLayerNormGradients row_layer_norm_gradients(const at::Tensor& h, const at::Tensor& gradient, const at::Tensor& beside,
                                               const at::Tensor& statistics, const at::Tensor& factor, const LayerNormWants& wants) {
  const at::Tensor from = simd::in_rows(h), g = simd::in_rows(gradient), other = in_rows_if(beside), numbers = numbers_of(factor);
  const std::int64_t rows = simd::row_count(h), width = h.size(-1);
  const std::int64_t blocks = (rows + simd::kLayerNormBlock - 1) / simd::kLayerNormBlock;
  const auto sums = [&](bool wanted) { return wanted ? at::empty({blocks, width}, h.options().dtype(at::kFloat)) : at::Tensor(); };
  const at::Tensor of_factor = sums(wants.factor), of_bias = sums(wants.bias);
  RowLayerNormGradients out;
  out.x = wants.x ? at::empty(h.sizes(), h.options()) : at::Tensor();
  const simd::LayerNormBackward of{rows_if(from),
                                   rows_if(g),
                                   rows_if(other),
                                   rows_if(out.x),
                                   reinterpret_cast<const simd::RowStatistics*>(statistics.const_data_ptr<float>()),
                                   data_of(numbers),
                                   room_of(of_factor),
                                   room_of(of_bias),
                                   width,
                                   rows,
                                   simd::is_bf16(h)};
  static const auto kernel = KF_SIMD_PICK(layer_norm_backward);
  simd::share(blocks, grain(width * simd::kLayerNormBlock),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  out.factor = wants.factor ? sum_of_rows(of_factor) : at::Tensor();
  out.bias = wants.bias ? sum_of_rows(of_bias) : at::Tensor();
  return out;
}

}  // namespace kf
