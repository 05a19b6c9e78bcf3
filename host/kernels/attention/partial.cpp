#include "kernels/attention/partial.h"

#include <ATen/ATen.h>

#include <limits>

#include "kernels/attention/by_rows.h"

namespace kf {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Scores {
  at::Tensor capped;  // (B, H, T, S) fp32, before anything is added or left out
  at::Tensor all;
};

Scores scores_of(const AttentionInput& in, const AttentionRules& rules) {
  const bool wide = rules.fp32_scores;
  const at::Tensor k = repeat_heads(in.k, in.q.size(1));
  at::Tensor scores = at::matmul(wide ? in.q.to(at::kFloat) : in.q, (wide ? k.to(at::kFloat) : k).transpose(-2, -1)) * rules.scale;
  if (rules.softcap > 0) {
    scores = at::tanh(scores / rules.softcap) * rules.softcap;
  }
  scores = scores.to(at::kFloat);
  at::Tensor all = in.bias.defined() ? scores + in.bias : scores;
  if (const at::Tensor seen = in.seen(); seen.defined()) {
    all = all.masked_fill(seen.logical_not(), kNever);
  } else if (in.causal) {
    all = all.masked_fill(at::ones({in.q.size(2), in.k.size(2)}, in.q.options().dtype(at::kBool)).tril().logical_not(), kNever);
  }
  return {scores, all};
}

/// exp(scores - log_sum), also where nothing is seen.
at::Tensor weights_of(const at::Tensor& scores, const at::Tensor& log_sum) {
  return (scores - log_sum.masked_fill(log_sum.isinf(), 0).unsqueeze(-1)).exp_();
}

/// exp(part - all), 0 where neither is anything.
at::Tensor share_of(const at::Tensor& part, const at::Tensor& all) { return (part - all.masked_fill(all.isinf(), 0)).exp_().unsqueeze(-1); }

/// Gradients of repeated heads, summed: (B, H, S, D) -> (B, Hkv, S, D).
at::Tensor sum_heads(const at::Tensor& x, std::int64_t heads) {
  return x.size(1) == heads ? x : x.unflatten(1, {heads, x.size(1) / heads}).sum(2);
}

}  // namespace

void PartialAttention::join(const PartialAttention& other) {
  if (!out.defined()) {
    *this = other;
    return;
  }
  const at::Tensor all = at::logaddexp(log_sum, other.log_sum);
  out = out * share_of(log_sum, all) + other.out * share_of(other.log_sum, all);
  log_sum = all;
}

void PartialAttention::join_sinks(const at::Tensor& sinks) {
  const at::Tensor all = at::logaddexp(log_sum, sinks.detach().to(at::kFloat).view({1, -1, 1}));
  out = out * share_of(log_sum, all);
  log_sum = all;
}

PartialAttention partial_attention(const AttentionInput& in, const AttentionRules& rules, bool fused) {
  if (fused && takes_rows(in, rules)) {
    const RowsAttention rows = rows_forward(in, rules);
    return {rows.out.to(at::kFloat), rows.log_sum};
  }
  const at::Tensor scores = scores_of(in, rules).all;
  const at::Tensor log_sum = scores.logsumexp(-1);
  return {at::matmul(weights_of(scores, log_sum).to(in.v.scalar_type()), repeat_heads(in.v, in.q.size(1))).to(at::kFloat), log_sum};
}

PartialGradients partial_backward(const AttentionInput& in, const AttentionRules& rules, bool fused, const at::Tensor& gradient,
                                  const at::Tensor& out, const at::Tensor& log_sum, const at::Tensor& delta) {
  if (fused && takes_rows(in, rules)) {
    const RowsGradients rows = rows_backward(in, rules, gradient, out, log_sum, delta);
    return {rows.q.to(at::kFloat), rows.k.to(at::kFloat), rows.v.to(at::kFloat)};
  }
  const Scores scores = scores_of(in, rules);
  const at::Tensor weights = weights_of(scores.all, log_sum);  // (B, H, T, S)
  const at::ScalarType type = in.v.scalar_type();
  PartialGradients out_gradients;
  const std::int64_t heads = in.q.size(1), kv_heads = in.k.size(1);
  out_gradients.v = sum_heads(at::matmul(weights.to(type).transpose(-2, -1), gradient).to(at::kFloat), kv_heads);
  at::Tensor inner = weights * (at::matmul(gradient, repeat_heads(in.v, heads).transpose(-2, -1)).to(at::kFloat) - delta.unsqueeze(-1));
  if (rules.softcap > 0) {
    inner = inner * (1 - (scores.capped / rules.softcap).square());
  }
  inner = inner * rules.scale;
  const auto wide = [&](const at::Tensor& x) { return rules.fp32_scores ? x.to(at::kFloat) : x; };
  inner = inner.to(wide(in.q).scalar_type());
  out_gradients.q = at::matmul(inner, wide(repeat_heads(in.k, heads))).to(at::kFloat);
  out_gradients.k = sum_heads(at::matmul(inner.transpose(-2, -1), wide(in.q)).to(at::kFloat), kv_heads);
  return out_gradients;
}

}  // namespace kf
