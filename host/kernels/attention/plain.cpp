#include "kernels/attention/attention.h"

#include <ATen/ATen.h>

#include <limits>

#include "kernels/product/result_name.h"

namespace kf {
namespace {

/// Undefined where everything is seen.
at::Tensor seen(const AttentionInput& in) {
  const bool triangle = !in.mask.defined() && in.causal;
  return triangle ? at::ones({in.q.size(2), in.k.size(2)}, in.q.options().dtype(at::kBool)).tril() : in.mask;
}

/// (B, H, T, S) in the type of the softmax.
at::Tensor scores_of(const AttentionInput& in, const AttentionRules& rules) {
  const bool wide = rules.fp32_scores;
  at::Tensor scores = at::matmul(wide ? in.q.to(at::kFloat) : in.q, (wide ? in.k.to(at::kFloat) : in.k).transpose(-2, -1)) * rules.scale;
  if (rules.softcap > 0) {
    scores = at::tanh(scores / rules.softcap) * rules.softcap;
  }
  if (rules.fp32_softmax) {
    scores = scores.to(at::kFloat);
  }
  if (in.bias.defined()) {
    scores = scores + in.bias.to(scores.scalar_type());
  }
  const at::Tensor mask = seen(in);
  return mask.defined() ? scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity()) : scores;
}

}  // namespace

at::Tensor plain_attention(const AttentionInput& in, const AttentionRules& rules) {
  const at::Tensor scores = scores_of(in, rules);
  at::Tensor weights;  // (B, H, T, S)
  if (in.sinks.defined()) {
    const at::Tensor column = in.sinks.view({1, -1, 1, 1}).expand({in.q.size(0), in.q.size(1), in.q.size(2), 1}).to(scores.scalar_type());
    weights = at::softmax(at::cat({scores, column}, -1), -1).narrow(-1, 0, in.k.size(2));
  } else {
    weights = at::softmax(scores, -1);
  }
  weights = weights.to(in.v.scalar_type());
  const at::Tensor dropped = in.drop ? in.drop(weights) : weights;
  return named_result("context", [&] { return at::matmul(dropped, in.v); });
}

}  // namespace kf
