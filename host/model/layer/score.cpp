#include "model/layer/score.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/product/result_name.h"
#include "model/layer/largest_scores.h"
#include "model/layer/sequence_attention.h"
#include "model/recompute/twice_differentiable.h"

namespace kf {
at::Tensor alibi_slopes(std::int64_t heads) {
  const auto whole = static_cast<std::int64_t>(std::exp2(std::floor(std::log2(static_cast<double>(heads)))));
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= whole; ++i) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(whole)));
  }
  for (std::int64_t i = 1; static_cast<std::int64_t>(slopes.size()) < heads; i += 2) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(whole)));
  }
  return at::tensor(slopes, at::kFloat);
}

Mixer::Mixer(const ScoreOptions& options, Dropout dropout) : options_(options), dropout_(dropout) {}

bool Mixer::takes_one_node(const ForwardContext& context, bool training) const {
  return options_.kernels->self_attention != nullptr && options_.rules.backend == AttentionRules::Backend::any &&
         options_.alibi_heads == 0 && !dropout_.active(training) && !context.tracks_scores && context.cache == nullptr &&
         context.visible != nullptr && context.visible->part() == nullptr;
}

at::Tensor Mixer::mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                      bool training) const {
  if (context.visible && context.visible->part() != nullptr) {
    return mix_part(q, k, v, sinks, context, training);
  }
  const std::int64_t past = k.size(2) - q.size(2);
  const Visibility own(past, q.size(2), q.device());
  const Visibility& visible = context.visible ? *context.visible : own;
  AttentionInput in{q, k, v, {}, visible.causal(), {}, sinks, nullptr, visible.ranges(options_.reach)};
  if (context.tracks_scores && context.results != nullptr) {
    context.results->note_largest(static_cast<std::size_t>(options_.layer),
                                  among_all(largest_scores(q, k, options_.rules.scale, in.seen(), in.causal)));
  }
  if (options_.alibi_heads > 0) {
    at::Tensor seen = in.seen();
    if (!seen.defined() && in.causal) {
      seen = at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril();
    }
    in.bias = alibi(seen, q.size(2), k.size(2), q.device());
  }
  if (dropout_.active(training)) {
    in.drop = [&](const at::Tensor& weights) { return dropped(weights, context, training); };
  }
  const Kernels& kernels = TwiceDifferentiable::wanted() ? plain_kernels() : *options_.kernels;
  return kernels.attention(in, options_.rules);
}

at::Tensor Mixer::mix_part(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks,
                           const ForwardContext& context, bool training) const {
  const SequencePart& part = *context.visible->part();
  const bool twice = TwiceDifferentiable::wanted();
  SequenceScores scores{options_.rules, options_.reach, options_.alibi_heads > 0 ? slopes(q.device()) : at::Tensor(),
                        sinks,          nullptr,        twice ? &plain_kernels() : options_.kernels};
  if (dropout_.active(training)) {
    scores.drop = [&](const at::Tensor& weights) { return dropped(weights, context, training); };
  }
  const bool own = k.size(2) != part.cut.length();
  if (options_.ring && own && !twice) {
    return named_result("context", [&] { return attend_ring(q, k, v, context.visible, scores); });
  }
  const at::Tensor both = own ? all_positions(at::cat({k, v}, 3), 2, part) : at::Tensor();
  const at::Tensor all_k = own ? both.narrow(3, 0, k.size(3)) : k;
  const at::Tensor all_v = own ? both.narrow(3, k.size(3), v.size(3)) : v;
  if (context.tracks_scores && context.results != nullptr) {
    context.results->note_largest(static_cast<std::size_t>(options_.layer), among_all(largest_of_all(q, all_k, *context.visible, scores)));
  }
  return attend_all(q, all_k, all_v, *context.visible, scores);
}

at::Tensor Mixer::dropped(const at::Tensor& weights, const ForwardContext& context, bool training) const {
  if (options_.all_heads == 0) {
    return dropout_.apply(weights, context, training);
  }
  return dropout_.apply_part(weights, 1, options_.first_head, options_.all_heads, {context.step, context.micro}, training);
}

at::Tensor Mixer::among_all(const at::Tensor& scores) const {
  if (options_.all_heads == 0) {
    return scores;
  }
  at::Tensor all = at::full({options_.all_heads}, -std::numeric_limits<float>::infinity(), scores.options());
  all.narrow(0, options_.first_head, options_.heads).copy_(scores);
  return all;
}

const at::Tensor& Mixer::slopes(at::Device device) const {
  if (!slopes_.defined() || slopes_.device() != device) {
    const at::Tensor every = alibi_slopes(options_.alibi_heads).mul_(options_.alibi_scale).to(device);
    slopes_ = options_.all_heads == 0 ? every : every.narrow(0, options_.first_head, options_.heads);
  }
  return slopes_;
}

at::Tensor Mixer::alibi(const at::Tensor& seen, std::int64_t fresh, std::int64_t all, at::Device device) const {
  const at::TensorOptions options = slopes(device).options();
  const at::Tensor query = at::arange(all - fresh, all, options).unsqueeze(1);                            // (T, 1)
  const at::Tensor penalty = (at::arange(all, options) - query).unsqueeze(0) * slopes_.view({-1, 1, 1});  // (H, T, S)
  return seen.defined() ? penalty.unsqueeze(0).masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity())
                        : penalty.unsqueeze(0);
}

}  // namespace kf
