#include <algorithm>
#include <utility>

#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/rules/pipeline.h"
#include "config/rules/rules.h"
#include "config/rules/unbuilt.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// Whether the job asks for several processes where one was started: that is the problem to report, not how the work would be divided.
bool lacks_processes(const Job& job) {
  const PerAxis d = degrees_of(job.config.distributed);
  return job.world == 1 && std::any_of(kAxes.begin(), kAxes.end(), [&](Axis axis) { return d[axis] > 1; });
}

void must_divide(Findings& findings, const std::string& key, std::int64_t value, const std::string& degree, std::int64_t ranks) {
  if (value % ranks != 0) {
    findings.problem({key, degree}, format("{} ({}) must be divisible by {} ({})", key, value, degree, ranks));
  }
}

/// A job that asks for several processes, started as one.
void say_lacking(const Job& job, Findings& findings, std::int64_t processes) {
  const PerAxis d = degrees_of(job.config.distributed);
  std::vector<std::string> keys;
  std::vector<std::string> said;
  for (const Axis axis : {Axis::dp_shard, Axis::dp_replicate, Axis::tp, Axis::pp, Axis::cp, Axis::ep}) {
    const std::string_view name = name_of(axis);
    if (const std::int64_t degree = d[axis]; degree > 1) {
      keys.push_back(format("distributed.{}", name));
      said.push_back(format("distributed.{} = {}", name, degree));
    }
  }
  const std::vector<std::string> refused = keys_refused(job.config);
  const std::string remedy = refused.empty() ? format("start them with `kf-host --nproc {} ...`", processes) : refused.front();
  findings.problem(keys, format("{} {} for {} processes, and this is one: {}; or leave {} out to run as one", join(said, ", "),
                                said.size() == 1 ? "asks" : "ask", processes, remedy, said.size() == 1 ? "it" : "them"));
}

void ranks_make_up_the_world(const Job& job, Findings& findings) {
  if (!job.world) {
    return;
  }
  PerAxis d = degrees_of(job.config.distributed);
  const std::int64_t world = *job.world;
  const std::int64_t shards = d.dp_shard;
  d.dp_shard = 1;
  const std::int64_t others = d.product();
  d.dp_shard = std::max<std::int64_t>(1, shards);
  const std::int64_t asked = d.product();
  const std::vector<std::string> keys{"distributed.dp_replicate", "distributed.tp", "distributed.pp", "distributed.cp", "distributed.ep"};
  if (world == 1 && asked != 1) {
    say_lacking(job, findings, asked);
  } else if (shards == -1 && (others > world || world % others != 0)) {
    findings.problem(keys, format("world_size ({}) is not divisible by dp_replicate*tp*pp*cp*ep ({}*{}*{}*{}*{} = {})", world,
                                  d.dp_replicate, d.tp, d.pp, d.cp, d.ep, others));
  } else if (shards != -1 && asked != world) {
    std::vector<std::string> all = keys;
    all.insert(all.begin(), "distributed.dp_shard");
    findings.problem(all, format("dp_shard*dp_replicate*tp*pp*cp*ep ({}*{}*{}*{}*{}*{} = {}) do not match world_size ({})", shards,
                                 d.dp_replicate, d.tp, d.pp, d.cp, d.ep, asked, world));
  }
}

/// Models, blocks and attentions of scripts divide what their hints say, or nothing.
bool has_native_layers(const ModelConfig& m) { return m.model_type == "transformer" && m.block == "standard"; }

void heads_divide_by_tp(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (lacks_processes(job) || !has_native_layers(m) || (m.attention != "gqa" && m.attention != "mla")) {
    return;
  }
  must_divide(findings, "model.n_heads", m.n_heads, "distributed.tp", job.config.distributed.tp);
}

void width_divides_by_tp(const Job& job, Findings& findings, const std::string& what, std::int64_t width, const std::string& key) {
  const std::int64_t tp = job.config.distributed.tp;
  if (width % tp != 0) {
    findings.problem({key, "distributed.tp", "model.dim", "model.ffn_dim_multiplier"},
                     format("{}, {} ({}), must be divisible by distributed.tp ({})", what, key, width, tp));
  }
}

void widths_divide_by_tp(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (lacks_processes(job) || m.model_type != "transformer") {
    return;
  }
  must_divide(findings, "model.vocab_size", m.vocab_size, "distributed.tp", job.config.distributed.tp);
  if (m.block != "standard") {
    return;
  }
  width_divides_by_tp(job, findings, "the ffn width", ffn_hidden_dim(m), "model.ffn_hidden_dim");
  if (is_moe(m)) {
    width_divides_by_tp(job, findings, "the width of an expert", expert_ffn_hidden_dim(m), "model.moe_ffn_dim");
    if (m.moe_shared_experts > 0) {
      width_divides_by_tp(job, findings, "the width of a shared expert", shared_ffn_hidden_dim(m), "model.moe_shared_ffn_dim");
    }
  }
}

void fp8_without_tp(const Job& job, Findings& findings) {
  if (lacks_processes(job)) {
    return;
  }
  if (job.config.train.mixed_precision == "fp8" && job.config.distributed.tp > 1) {
    findings.problem(
        {"train.mixed_precision", "distributed.tp"},
        format(
            "FP8 + Tensor Parallelism is not yet supported: train.mixed_precision = fp8, distributed.tp = {}; use fp8 with dp_shard only, "
            "or bf16",
            job.config.distributed.tp));
  }
}

void expert_parallel_needs_experts(const Job& job, Findings& findings) {
  if (lacks_processes(job)) {
    return;
  }
  const std::int64_t ep = job.config.distributed.ep;
  const std::int64_t experts = job.config.model.num_experts;
  if (ep > 1 && experts == 0) {
    findings.problem({"distributed.ep", "model.num_experts"},
                     format("distributed.ep ({}) > 1 requires an MoE model (model.num_experts > 0)", ep));
  } else if (ep > 1) {
    must_divide(findings, "model.num_experts", experts, "distributed.ep", ep);
  }
}

/// By shape all experts of a layer are one matrix, as in the reference.
void stacks_lie_together_for_muon(const Job& job, Findings& findings) {
  const Config& c = job.config;
  if (!lacks_processes(job) && c.distributed.ep > 1 && c.optimizer.name == "muon" && c.optimizer.muon_params == "shape") {
    findings.problem({"optimizer.muon_params", "distributed.ep"},
                     format("optimizer.muon_params = \"shape\" takes all experts of a layer as one matrix, which distributed.ep = {} "
                            "divides; use muon_params = \"hidden\", or dp_shard only",
                            c.distributed.ep));
  }
}

void each_micro_has_an_effect(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  if (d.reduce_each_micro && d.zero_stage == 1) {
    findings.warn({"distributed.reduce_each_micro", "distributed.zero_stage"},
                  "distributed.reduce_each_micro has no effect with distributed.zero_stage = 1, which keeps gradients whole");
  }
}

/// How an axis cuts, where it does not.
void settings_act_where_cut(const Job& job, Findings& findings) {
  const DistributedConfig& d = job.config.distributed;
  const auto check = [&](const char* key, const char* degree, std::int64_t ranks) {
    if (ranks == 1 && findings.given(key)) {
      findings.warn({key, degree}, format("{} has no effect: {} is 1", key, degree));
    }
  };
  check("distributed.cp_method", "distributed.cp", d.cp);
  check("distributed.cp_order", "distributed.cp", d.cp);
  check("distributed.sequence_parallel", "distributed.tp", d.tp);
}

}  // namespace

std::vector<Rule> parallel_rules() {
  std::vector<Rule> rules{ranks_make_up_the_world,       heads_divide_by_tp,           widths_divide_by_tp,      fp8_without_tp,
                          expert_parallel_needs_experts, stacks_lie_together_for_muon, each_micro_has_an_effect, settings_act_where_cut};
  const std::vector<Rule> pipeline = pipeline_rules();
  rules.insert(rules.end(), pipeline.begin(), pipeline.end());
  return rules;
}

}  // namespace kf::config
