#include "model/moe/topk_router.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "config/plan/derived.h"
#include "model/init.h"
#include "model/seed.h"
#include "parallel/world.h"
#include "registry/registries.h"

namespace kf {
namespace {

using Score = TopKRouterOptions::Score;

}  // namespace

at::Tensor count_assignments(const at::Tensor& experts, std::int64_t n_experts) {
  const at::Tensor flat = experts.flatten();
  return at::zeros({n_experts}, flat.options()).scatter_add_(0, flat, at::ones_like(flat));
}

TopKRouter::TopKRouter(const TopKRouterOptions& options) : options_(options) {
  gate_ = add_parameter("gate.weight", {options.experts, options.dim}, options.init, Role::router);
  gate_->keep_fp32 = options.fp32;
  if (options.gate_bias) {
    gate_bias_ = add_parameter("gate.bias", {options.experts}, Init::zeros(), Role::vector);
  }
  if (options.normed) {
    scale_ = add_parameter("scale", {options.dim}, Init::ones(), Role::vector);
    expert_scale_ = add_parameter("expert_scale", {options.experts}, Init::ones(), Role::vector);
  }
  if (options.bias) {
    bias_ = add_child("", std::make_shared<SelectionBias>(*options.bias));
  }
}

at::Tensor TopKRouter::read(const at::Tensor& x) const {
  if (scale_ == nullptr) {
    return x;
  }
  const at::Tensor wide = x.to(scale_->value.scalar_type());
  const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + options_.eps);
  return (normed * scale_->value / std::sqrt(static_cast<double>(options_.dim))).to(x.scalar_type());
}

at::Tensor TopKRouter::logits(const at::Tensor& x) const {
  const at::ScalarType wide = gate_->master.defined() ? gate_->master.scalar_type() : at::kFloat;  // a frozen gate has none of its own
  const at::Tensor logits = at::linear(options_.fp32 ? x.to(gate_->value.scalar_type()) : x, gate_->value).to(wide);
  return gate_bias_ != nullptr ? logits + gate_bias_->value : logits;
}

at::Tensor TopKRouter::scores(const at::Tensor& logits) const {
  switch (options_.score) {
    case Score::softmax: break;
    case Score::sigmoid: return logits.sigmoid();
    case Score::sqrt_softplus: return at::softplus(logits).sqrt();
  }
  return logits.softmax(-1);
}

at::Tensor TopKRouter::keep_best_groups(const at::Tensor& value) const {
  const at::Tensor grouped = value.unflatten(1, {options_.groups, -1});  // (N, G, E/G)
  // DeepSeek V3 ranks a group by its two best experts, V2 (softmax) by the best one.
  const at::Tensor rank = options_.score == Score::softmax ? grouped.amax(-1) : std::get<0>(grouped.topk(2, -1)).sum(-1);  // (N, G)
  const at::Tensor best = std::get<1>(rank.topk(options_.topk_groups, -1));
  const at::Tensor outside = at::ones_like(rank, at::kBool).scatter(1, best, false);
  return grouped.masked_fill(outside.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(1);
}

at::Tensor TopKRouter::choose(const at::Tensor& scores) const {
  const at::NoGradGuard no_grad;
  at::Tensor value = scores.detach();
  if (options_.random) {
    // Recomputation must find the same experts again, so the draw does not depend on when it is made.
    value = at::rand(value.sizes(), at::detail::createCPUGenerator(*options_.random), at::TensorOptions(at::kFloat)).to(value.device());
  } else if (bias_ != nullptr) {
    value = value + bias_->value();
  }
  if (options_.groups > 0) {
    value = keep_best_groups(value);
  }
  return std::get<1>(value.topk(options_.top_k, -1));
}

at::Tensor TopKRouter::mixing(const at::Tensor& scores, const at::Tensor& experts) const {
  at::Tensor weights = scores.gather(1, experts);
  if (options_.normalise && options_.top_k > 1) {
    weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
  }
  if (expert_scale_ != nullptr) {
    weights = weights * expert_scale_->value.index_select(0, experts.flatten()).view_as(experts);
  }
  return options_.scale == 1 ? weights : weights * options_.scale;
}

/// The mean over sequences of sum_e f_e P_e. Ranks along cp have tokens of the same sequences, as many each: f is of them all, and the mean
/// of their P is that of the sequence.
at::Tensor TopKRouter::balance_by_sequence(const at::Tensor& scores, const at::Tensor& experts, std::int64_t length) const {
  const at::Tensor own = experts.reshape({-1, length * experts.size(1)});  // (B, T k)
  const at::Tensor counts = at::zeros({own.size(0), options_.experts}, own.options()).scatter_add_(1, own, at::ones_like(own));
  std::int64_t assignments = own.size(1);
  if (options_.world != nullptr) {
    Group& cp = options_.world->along(Axis::cp);
    cp.sum(counts);
    assignments *= cp.size();
  }
  const at::Tensor shares = counts.to(scores.scalar_type()) / static_cast<double>(assignments);  // (B, E)
  return (shares * scores.view({-1, length, options_.experts}).mean(1)).sum(1).mean();
}

void TopKRouter::add_balance(Routing& routing, const at::Tensor& scores, std::int64_t length) const {
  if (options_.score != Score::softmax && options_.sequence_weight == 0) {
    return;
  }
  const at::Tensor& experts = routing.experts;
  const double weight = options_.score == Score::softmax ? 1 : options_.sequence_weight;
  const bool shared = options_.world != nullptr && options_.world->data().size() > 1;  // other ranks have other sequences
  if (options_.by_sequence && (shared || length < scores.size(0))) {
    routing.balance = balance_by_sequence(scores, experts, length) * (weight * static_cast<double>(options_.experts));
    return;
  }
  const at::Tensor share = count_assignments(experts, options_.experts).to(scores.scalar_type()) / static_cast<double>(experts.numel());
  routing.mean_scores = scores.mean(0);
  routing.balance_factor = weight * static_cast<double>(options_.experts);
  routing.balance = (share * routing.mean_scores).sum() * routing.balance_factor;
}

Routing TopKRouter::route_sequences(const at::Tensor& x, std::int64_t length) const {
  const at::Tensor logits = this->logits(read(x));
  const at::Tensor scores = this->scores(logits);
  Routing routing;
  routing.experts = choose(scores);
  routing.weights = mixing(scores, routing.experts);
  if (training() && x.size(0) > 0) {
    add_balance(routing, scores, length);
    routing.z = logits.logsumexp(-1).square().mean();
  }
  return routing;
}

double TopKRouter::balance_weight() const { return options_.score == Score::softmax ? options_.balance_weight : 1; }

void TopKRouter::rebalance(const at::Tensor& counts, double progress) {
  if (bias_ != nullptr) {
    bias_->move(counts, progress);
  }
}

namespace {

SelectionBiasOptions::Schedule bias_schedule(const std::string& name) {
  return name == "cosine_decay"    ? SelectionBiasOptions::Schedule::cosine_decay
         : name == "linear_warmup" ? SelectionBiasOptions::Schedule::linear_warmup
                                   : SelectionBiasOptions::Schedule::constant;
}

}  // namespace

TopKRouterOptions topk_router_options(const PartArgs& args, const Place& place) {
  const config::ModelConfig& m = args.config.model;
  TopKRouterOptions o;
  o.dim = place.dim;
  o.experts = m.num_experts;
  o.top_k = m.moe_top_k;
  o.score = m.moe_router.starts_with("sigmoid") ? Score::sigmoid : m.moe_router == "sqrtsoftplus" ? Score::sqrt_softplus : Score::softmax;
  o.normalise = m.moe_router != "softmax" || m.moe_norm_topk;
  o.scale = m.moe_routed_scale;
  o.groups = m.moe_groups;
  o.topk_groups = m.moe_topk_groups;
  o.gate_bias = m.moe_router_bias;
  o.fp32 = m.moe_router_fp32;
  o.normed = m.moe_router == "softmax_normed";
  o.eps = m.norm_eps;
  o.init = hidden_init(m, place.dim);
  o.balance_weight = m.moe_aux_loss_weight;
  o.sequence_weight = m.moe_sequence_aux_loss_weight;
  o.world = args.world;
  o.by_sequence = o.score != Score::softmax && m.moe_sequence_aux_scope == "sequence";
  if (const std::string rule = config::moe_bias_rule(m); rule != "none") {
    o.bias = SelectionBiasOptions{m.num_experts, rule == "sign" ? SelectionBiasOptions::Rule::sign : SelectionBiasOptions::Rule::ema,
                                  bias_schedule(m.moe_bias_schedule), m.moe_bias_rate};
  }
  if (m.moe_random_routing) {
    o.random = mixed_seed(static_cast<std::uint64_t>(args.config.train.seed), static_cast<std::uint64_t>(place.layer));
  }
  return o;
}

}  // namespace kf
