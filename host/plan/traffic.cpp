#include "plan/traffic.h"

#include <algorithm>

#include "config/plan/batch_plan.h"
#include "config/plan/context_parallel.h"
#include "config/plan/derived.h"

namespace kf::plan {
namespace {

using Kind = Flow::Kind;
using When = Flow::When;

double real(std::int64_t n) { return static_cast<double>(n); }

/// Bytes of the values and numbers of the gradients of weights, those of experts apart: they lie over other ranks.
struct Amounts {
  double values = 0, expert_values = 0;
  double numbers = 0, expert_numbers = 0;  // that train
};

Amounts amounts_of(const std::vector<const Weight*>& weights, const Layout& layout, const config::TrainConfig& train) {
  Amounts out;
  for (const Weight* weight : weights) {
    const double held = held_numbers(*weight, layout);
    const bool trains = weight->trains && !weight->buffer;
    const bool cut = trains && !weight->shape.empty();
    const double bytes = cut ? held * (train.mixed_precision != "fp32" && weight->low ? 2 : 4) : 0;
    const bool experts = weight->experts && layout.mesh.degree(Axis::ep) > 1;
    (experts ? out.expert_values : out.values) += bytes;
    (experts ? out.expert_numbers : out.numbers) += trains ? held : 0;
  }
  return out;
}

std::int64_t mixture_layers(const config::ModelConfig& model, const config::Stage& piece) {
  std::int64_t out = 0;
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    out += config::is_moe_layer(model, layer) ? 1 : 0;
  }
  return out;
}

/// Whether routed experts are narrower than what they stand in, or wider.
bool is_latent(const config::ModelConfig& m) { return config::expert_dim(m) != config::branch_dim(m); }

/// Calls of the ranks of tp, in whole hidden states.
struct TensorCalls {
  double gathers = 0, scatters = 0, sums = 0;

  void add(const TensorCalls& other, double times) {
    gathers += times * other.gathers;
    scatters += times * other.scatters;
    sums += times * other.sums;
  }
};

/// What a branch of a block, or all of them, calls.
struct BranchCalls {
  TensorCalls forward, backward;

  void add(const BranchCalls& branch, double times, bool again) {
    forward.add(branch.forward, times);
    backward.add(branch.backward, times);
    backward.add(branch.forward, again ? times : 0);
  }
};

/// In where layers are divided and out again.
BranchCalls branch_calls(bool split) { return split ? BranchCalls{{1, 1, 0}, {1, 1, 0}} : BranchCalls{{0, 0, 1}, {0, 0, 1}}; }

/// The same of experts, with the shared ones: behind what is computed alike (Traffic::add_around_experts) there may be nothing to add up.
BranchCalls expert_calls(const config::ModelConfig& m, bool split) {
  const bool shared = m.moe_shared_experts > 0, latent = is_latent(m);
  BranchCalls out = branch_calls(split);
  if (latent && !shared) {
    (split ? out.forward.scatters : out.forward.sums) = 0;
  }
  if (latent && shared && split) {
    out.backward.gathers += 1;  // gradients of what is the same on all ranks, beside those of shares
  }
  if ((latent || m.moe_beside_dense) && !shared && !split) {
    out.backward.sums = 0;
  }
  return out;
}

}  // namespace

double Flow::sent() const {
  const double n = real(reach.ranks);
  if (n <= 1) {
    return 0;
  }
  switch (kind) {
    case Kind::gather:
    case Kind::scatter_sum:
    case Kind::exchange: return calls * bytes * (n - 1) / n;
    case Kind::sum: return calls * bytes * 2 * (n - 1) / n;
    case Kind::send: return calls * bytes;
  }
  return 0;
}

double Flow::seconds(const Gpu& gpu) const {
  switch (kind) {
    case Kind::gather:
    case Kind::scatter_sum: return calls * ring_seconds(gpu, reach, bytes);
    case Kind::sum: return calls * sum_seconds(gpu, reach, bytes);
    case Kind::exchange: return calls * exchange_seconds(gpu, reach, bytes);
    case Kind::send: return calls * send_seconds(gpu, reach, bytes);
  }
  return 0;
}

Reaches Reaches::of(const Mesh& mesh, std::int64_t node, std::int64_t stage) {
  const auto rank_of = [&](std::int64_t of_stage) {
    PerAxis at;
    at.pp = of_stage;
    return mesh.rank_at(at);
  };
  const std::int64_t rank = rank_of(stage), stages = mesh.degree(Axis::pp);
  const auto along = [&](Axis axis) { return reach_of(mesh.ranks_along(axis, rank), node); };
  const auto pair = [&](std::int64_t one, std::int64_t other) {
    return reach_of(one == other ? std::vector<std::int64_t>{one} : std::vector<std::int64_t>{std::min(one, other), std::max(one, other)},
                    node);
  };
  return {along(Axis::tp),
          along(Axis::cp),
          along(Axis::ep),
          pair(rank, rank_of((stage + 1) % stages)),
          pair(rank_of(0), rank_of(stages - 1)),
          reach_of(mesh.shard_ranks(rank), node),
          reach_of(mesh.expert_shard_ranks(rank), node),
          along(Axis::dp_replicate)};
}

Traffic::Traffic(const config::Config& config, const Weights& weights, const Layout& layout, const Reaches& reaches, std::int64_t stage)
    : config_(config),
      weights_(weights),
      layout_(layout),
      stage_(stage),
      reaches_(reaches),
      width_(config.train.mixed_precision == "fp32" ? 4 : 2),
      tokens_(real(config.train.batch_size * config.train.seq_len) / real(layout.mesh.degree(Axis::cp))),
      micros_(real(config::BatchPlan(config.train, layout.mesh.readers()).micros(0))) {}

/// Each branch of a block enters what tensor parallelism divides, and leaves it (Korthikanti et al. 2022, section 4.2); so do the embedding
/// (out) and the head (in).
void Traffic::add_tensor(std::vector<Flow>& out, const config::Stage& piece) const {
  if (reaches_.tp.ranks == 1) {
    return;
  }
  const config::ModelConfig& m = config_.model;
  const bool split = config_.distributed.sequence_parallel;
  const double bytes = tokens_ * real(m.dim) * width_;
  BranchCalls all;
  (split ? all.forward.gathers : all.backward.sums) += piece.heads ? 1 : 0;
  (split ? all.forward.scatters : all.forward.sums) += piece.embeds ? 1 : 0;
  all.backward.scatters += all.forward.gathers;
  all.backward.gathers += all.forward.scatters;
  for (const auto& [layer, count] : layers_of(weights_, piece)) {
    const bool experts = config::is_moe_layer(m, layer), again = config::runs_again(config_.train, layer, "mlp");
    all.add(branch_calls(split), real(count), config::runs_again(config_.train, layer, "attention"));
    if (!experts || m.moe_beside_dense) {
      all.add(branch_calls(split), real(count), again);
    }
    if (experts) {
      all.add(expert_calls(m, split), real(count), again);
      add_around_experts(out, real(count), again);
    }
  }
  for (const auto& [calls, when] : {std::pair(all.forward, When::forward), std::pair(all.backward, When::backward)}) {
    out.push_back({"tp", "hidden states gathered", Kind::gather, when, calls.gathers, bytes, reaches_.tp});
    out.push_back({"tp", "hidden states summed in parts", Kind::scatter_sum, when, calls.scatters, bytes, reaches_.tp});
    out.push_back({"tp", "hidden states summed", Kind::sum, when, calls.sums, bytes, reaches_.tp});
  }
  if (piece.heads) {  // the softmax over the whole vocabulary: largest logit, sum, the label's logit
    out.push_back({"tp", "softmax", Kind::sum, When::forward, 3, tokens_ * 4, reaches_.tp});
  }
}

/// Between ranks of tp, beside hidden states: gradients of the tokens' weights, and what a norm or a narrower width around the experts,
/// which every rank computes, makes of hidden states.
void Traffic::add_around_experts(std::vector<Flow>& out, double layers, bool again) const {
  const config::ModelConfig& m = config_.model;
  const double latent = is_latent(m) ? layers : 0, around = m.moe_beside_dense ? layers : latent;
  const double bytes = tokens_ * real(config::expert_dim(m)) * width_;
  out.push_back(
      {"tp", "gradients of the tokens' weights", Kind::sum, When::backward, layers, tokens_ * real(m.moe_top_k) * 4, reaches_.tp});
  out.push_back({"tp", "results of experts summed", Kind::sum, When::forward, latent, bytes, reaches_.tp});
  out.push_back({"tp", "results of experts summed", Kind::sum, When::backward, again ? latent : 0, bytes, reaches_.tp});
  out.push_back({"tp", "gradients in front of experts summed", Kind::sum, When::backward, around, bytes, reaches_.tp});
}

/// Keys and values go around the ring in forward; in backward they do so again, and their gradients follow them in fp32.
void Traffic::add_context(std::vector<Flow>& out, const config::Stage& piece) const {
  if (reaches_.cp.ranks == 1) {
    return;
  }
  const config::ModelConfig& m = config_.model;
  const bool ring = config::uses_ring(config_);
  const double tp = real(reaches_.tp.ranks), others = real(reaches_.cp.ranks - 1);
  for (const auto& [layer, layers] : layers_of(weights_, piece)) {
    const double count = real(layers);
    const double numbers = m.attention == "mla"
                               ? real(m.mla_kv_rank + m.mla_rope_dim)  // the latent, which is the same for all heads
                               : 2 * std::max(real(config::kv_heads(m, layer)) / tp, 1.0) * real(config::head_dim(m, layer));
    const double bytes = tokens_ * numbers * width_;
    const double again = config::runs_again(config_.train, layer, "attention") ? 1 : 0;
    if (ring) {
      out.push_back({"cp", "keys and values", Kind::send, When::hidden_attention, count * others, bytes, reaches_.cp});
      out.push_back({"cp", "keys and values", Kind::send, When::hidden_backward, count * others * (1 + again), bytes, reaches_.cp});
      out.push_back({"cp", "their gradients", Kind::send, When::hidden_backward, count * (others + 1), tokens_ * numbers * 4, reaches_.cp});
    } else {
      const double all = bytes * real(reaches_.cp.ranks);
      out.push_back({"cp", "keys and values", Kind::gather, When::forward, count, all, reaches_.cp});
      out.push_back({"cp", "keys and values", Kind::gather, When::backward, count * again, all, reaches_.cp});
      out.push_back({"cp", "their gradients", Kind::scatter_sum, When::backward, count, all, reaches_.cp});
    }
  }
}

/// Tokens go to their experts and come back, and so do the gradients.
void Traffic::add_experts(std::vector<Flow>& out, const config::Stage& piece) const {
  const double layers = real(mixture_layers(config_.model, piece));
  if (reaches_.ep.ranks == 1 || layers == 0) {
    return;
  }
  const double bytes = tokens_ * real(config_.model.moe_top_k) * real(config::expert_dim(config_.model)) * width_;
  double again = 0;
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    again += config::is_moe_layer(config_.model, layer) && config::runs_again(config_.train, layer, "mlp") ? 2 : 0;
  }
  out.push_back({"ep", "tokens to their experts and back", Kind::exchange, When::forward, 2 * layers, bytes, reaches_.ep});
  out.push_back({"ep", "their gradients", Kind::exchange, When::backward, 2 * layers + again, bytes, reaches_.ep});
}

/// zero_stage = 3: a block is gathered before its forward and before its backward; with prefetch the last one stays in between.
void Traffic::add_gathered(std::vector<Flow>& out, const config::Stage& piece) const {
  if (reaches_.shards.ranks == 1 || layout_.zero_stage != 3) {
    return;
  }
  const bool prefetch = config_.distributed.prefetch;
  const When forward = prefetch ? When::hidden_forward : When::forward, backward = prefetch ? When::hidden_backward : When::backward;
  const std::vector<LikeLayers> all = layers_of(weights_, piece);
  const std::vector<LikeLayers> last = prefetch ? layers_of(weights_, {piece.end - 1, piece.end, false, false}) : std::vector<LikeLayers>();
  for (const auto& [layer, count] : all) {
    std::vector<const Weight*> block;
    for (const Weight& weight : weights_.all) {
      if (layer_of(weight.name, config_.model.n_layers) == layer) {
        block.push_back(&weight);
      }
    }
    const Amounts own = amounts_of(block, layout_, config_.train);
    const double once = real(count), again = once - (!last.empty() && last[0].layer == layer ? 1 : 0);
    out.push_back({"dp_shard", "weights gathered", Kind::gather, forward, once, own.values, reaches_.shards});
    out.push_back({"dp_shard", "weights gathered", Kind::gather, backward, again, own.values, reaches_.shards});
    if (own.expert_values > 0 && reaches_.expert_shards.ranks > 1) {
      out.push_back({"dp_shard", "experts gathered", Kind::gather, forward, once, own.expert_values, reaches_.expert_shards});
      out.push_back({"dp_shard", "experts gathered", Kind::gather, backward, again, own.expert_values, reaches_.expert_shards});
    }
  }
}

void Traffic::add_reduced(std::vector<Flow>& out) const {
  const config::DistributedConfig& d = config_.distributed;
  const std::vector<const Weight*> mine = weights_of(weights_, layout_, config_.model, stage_);
  const Amounts all = amounts_of(mine, layout_, config_.train);
  const double number = d.reduce_dtype == "bf16" ? 2 : 4;
  const double times = d.reduce_each_micro ? micros_ : 1;
  const When when = d.prefetch ? When::hidden_backward : When::update;
  const bool apart = config_.diloco.interval > 0;  // workers share nothing in an update
  const auto reduce = [&](const char* what, double numbers, const Reach& shards) {
    if (numbers <= 0) {
      return;
    }
    if (shards.ranks > 1) {
      out.push_back({"dp_shard", what, Kind::scatter_sum, when, times, numbers * number, shards});
    }
    if (reaches_.replicas.ranks > 1 && !apart) {
      out.push_back({"dp_replicate", what, Kind::sum, when, times, numbers * number / real(shards.ranks), reaches_.replicas});
    }
  };
  reduce("gradients summed", all.numbers, reaches_.shards);
  reduce("experts' gradients summed", all.expert_numbers, reaches_.expert_shards);
  if (layout_.zero_stage != 3) {
    out.push_back({"dp_shard", "moved weights gathered", Kind::gather, When::update, 1, all.values, reaches_.shards});
    out.push_back({"dp_shard", "moved experts gathered", Kind::gather, When::update, 1, all.expert_values, reaches_.expert_shards});
    return;
  }
  std::vector<const Weight*> rest;  // what is in no block is gathered once, before the first micro-batch
  for (const Weight* weight : mine) {
    const std::int64_t layer = layer_of(weight->name, config_.model.n_layers);
    if (layer < 0 || layer >= config_.model.n_layers) {
      rest.push_back(weight);
    }
  }
  out.push_back(
      {"dp_shard", "weights gathered", Kind::gather, When::update, 1, amounts_of(rest, layout_, config_.train).values, reaches_.shards});
}

/// The first and the last stage add up the gradients of the embedding that both have.
void Traffic::add_ends(std::vector<Flow>& out) const {
  if (reaches_.ends.ranks == 1 || !on_both_ends(config_.model) || (stage_ > 0 && stage_ + 1 < layout_.mesh.degree(Axis::pp))) {
    return;
  }
  for (const Weight& weight : weights_.all) {
    if (is_embedding(weight) && weight.trains) {
      const double part = held_numbers(weight, layout_) / real(layout_.shards(weight));
      out.push_back({"pp", "the embedding's gradients summed", Kind::sum, When::update, 1, part * 4, reaches_.ends});
    }
  }
}

/// DiLoCo: what every worker moved, once in `interval` updates. As int8 it is not added up on its way: each gets that of all
/// (optim/diloco.h).
void Traffic::add_workers(std::vector<Flow>& out) const {
  const config::DilocoConfig& diloco = config_.diloco;
  if (diloco.interval == 0 || reaches_.replicas.ranks == 1) {
    return;
  }
  const Amounts all = amounts_of(weights_of(weights_, layout_, config_.model, stage_), layout_, config_.train);
  const double mine = all.numbers / real(reaches_.shards.ranks) + all.expert_numbers / real(reaches_.expert_shards.ranks);
  const double calls = 1 / real(diloco.interval);
  if (diloco.exchange_dtype == "int8") {
    constexpr double kNumber = 1 + 4.0 / 64;  // an fp32 scale for each 64 numbers
    const double bytes = mine * kNumber * real(reaches_.replicas.ranks);
    out.push_back({"dp_replicate", "what workers moved", Kind::gather, When::update, calls, bytes, reaches_.replicas});
  } else {
    const double bytes = mine * (diloco.exchange_dtype == "bf16" ? 2 : 4);
    out.push_back({"dp_replicate", "what workers moved", Kind::sum, When::update, calls, bytes, reaches_.replicas});
  }
}

std::vector<Flow> Traffic::of_micro(const config::Stage& piece) const {
  std::vector<Flow> out;
  add_tensor(out, piece);
  add_context(out, piece);
  add_experts(out, piece);
  add_gathered(out, piece);
  return out;
}

std::vector<Flow> Traffic::of_step() const {
  std::vector<Flow> out;
  add_reduced(out);
  add_ends(out);
  add_workers(out);
  std::erase_if(out, [](const Flow& flow) { return flow.sent() <= 0; });
  return out;
}

Flow Traffic::handed_on() const {
  const double shared = config_.distributed.sequence_parallel ? real(layout_.mesh.degree(Axis::tp)) : 1;  // each tp rank has its positions
  const double bytes = tokens_ / shared * real(config_.model.dim) * width_;
  return {"pp", "hidden states handed on", Kind::send, When::forward, 1, bytes, reaches_.pp};
}

std::vector<Flow> step_flows(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t node,
                             std::int64_t stage) {
  const Reaches reaches = Reaches::of(layout.mesh, node, stage);
  const Traffic traffic(config, weights, layout, reaches, stage);
  const double micros = real(config::BatchPlan(config.train, layout.mesh.readers()).micros(0));
  std::vector<Flow> all = traffic.of_step();
  for (const config::Stage& piece : layout.stages.at(static_cast<std::size_t>(stage))) {
    for (Flow& flow : traffic.of_micro(piece)) {
      flow.calls *= micros;
      all.push_back(std::move(flow));
    }
    for (const bool last : {piece.heads, piece.embeds}) {  // forward to the next piece, backward to the one before
      if (!last) {
        Flow flow = traffic.handed_on();
        flow.calls = micros;
        all.push_back(std::move(flow));
      }
    }
  }
  // Equal calls of several layers are one line.
  std::vector<Flow> out;
  for (const Flow& flow : all) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Flow& other) {
      return other.axis == flow.axis && other.what == flow.what && other.kind == flow.kind && other.when == flow.when &&
             other.bytes == flow.bytes && other.reach.ranks == flow.reach.ranks;
    });
    if (same != out.end()) {
      same->calls += flow.calls;
    } else if (flow.sent() > 0) {
      out.push_back(flow);
    }
  }
  return out;
}

double sent_along(const std::vector<Flow>& flows, const std::string& axis) {
  double out = 0;
  for (const Flow& flow : flows) {
    out += flow.axis == axis ? flow.sent() : 0;
  }
  return out;
}

}  // namespace kf::plan
