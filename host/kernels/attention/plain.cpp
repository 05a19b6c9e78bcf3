#include "kernels/attention/attention.h"

#include <ATen/ATen.h>

#include <limits>

#include "kernels/product/result_name.h"

namespace kf {
namespace {

/// Undefined where everything is seen.
at::Tensor mask_of(const AttentionInput& in) {
  const at::Tensor seen = in.seen();
  const bool triangle = !seen.defined() && in.causal;
  return triangle ? at::ones({in.q.size(2), in.k.size(2)}, in.q.options().dtype(at::kBool)).tril() : seen;
}

/// (B, H, T, S) in the type of the softmax.
at::Tensor scores_of(const AttentionInput& in, const AttentionRules& rules) {
  const bool wide = rules.fp32_scores;
  const at::Tensor k = repeat_heads(in.k, in.q.size(1));
  at::Tensor scores = at::matmul(wide ? in.q.to(at::kFloat) : in.q, (wide ? k.to(at::kFloat) : k).transpose(-2, -1)) * rules.scale;
  if (rules.softcap > 0) {
    scores = at::tanh(scores / rules.softcap) * rules.softcap;
  }
  if (rules.fp32_softmax) {
    scores = scores.to(at::kFloat);
  }
  if (in.bias.defined()) {
    scores = scores + in.bias.to(scores.scalar_type());
  }
  const at::Tensor mask = mask_of(in);
  return mask.defined() ? scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity()) : scores;
}

}  // namespace

const at::Tensor& KeyRanges::mask() const {
  if (!mask_.defined()) {
    const at::Tensor key = at::arange(keys_, first_.options());                                           // (S)
    const at::Tensor last = at::arange(ahead_, ahead_ + first_.size(1), first_.options()).view({-1, 1});  // (T, 1)
    mask_ = key.ge(first_.unsqueeze(2)).logical_and_(key.le(last)).unsqueeze(1);
  }
  return mask_;
}

at::Tensor repeat_heads(const at::Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) {
    return x;
  }
  return x.unsqueeze(2).expand({x.size(0), x.size(1), heads / x.size(1), x.size(2), x.size(3)}).flatten(1, 2);
}

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
  const at::Tensor v = repeat_heads(in.v, in.q.size(1));
  return named_result("context", [&] { return at::matmul(dropped, v); });
}

}  // namespace kf
