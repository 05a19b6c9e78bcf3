#include "model/layer/largest_scores.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>

namespace kf {
namespace {

constexpr std::int64_t kRows = 256;  // queries at a time

}  // namespace

at::Tensor largest_scores(const at::Tensor& q, const at::Tensor& k, double scale, const at::Tensor& mask, bool causal) {
  const at::NoGradGuard no_grad;
  const std::int64_t heads = q.size(1);
  const std::int64_t rows = q.size(2);
  const std::int64_t keys = k.size(2);
  const at::Tensor wide_k = k.to(at::kFloat).unsqueeze(2).transpose(-2, -1);                      // (B, Hkv, 1, D, S)
  const at::Tensor grouped = q.view({q.size(0), k.size(1), heads / k.size(1), rows, q.size(3)});  // (B, Hkv, G, T, D)
  at::Tensor best = at::full({heads}, -std::numeric_limits<float>::infinity(), q.options().dtype(at::kFloat));
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t n = std::min(kRows, rows - first);
    at::Tensor scores = grouped.narrow(3, first, n).to(at::kFloat).matmul(wide_k).mul_(scale).view({q.size(0), heads, n, keys});
    at::Tensor visible;
    if (mask.defined()) {
      visible = mask.narrow(2, first, n);
    } else if (causal) {
      visible = at::ones({n, keys}, q.options().dtype(at::kBool)).tril(keys - rows + first);
    }
    if (visible.defined()) {
      scores.masked_fill_(visible.logical_not(), -std::numeric_limits<float>::infinity());
    }
    best = at::maximum(best, scores.amax({0, 2, 3}));
  }
  return best;
}

}  // namespace kf
