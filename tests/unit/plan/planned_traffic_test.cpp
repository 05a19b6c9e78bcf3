// Planned traffic against the bytes that the groups count, axis by axis.

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "parallel/thread_ranks.h"
#include "parallel/traffic.h"
#include "plan/traffic.h"
#include "train/loop/planned_weights.h"
#include "unit/layout/diloco_worker.h"
#include "unit/layout/equal_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// What trains a job on a rank: workers of DiLoCo exchange what they moved.
std::function<void(Loader& data, std::int64_t step)> trainer(const config::Config& c, const World& world) {
  if (c.diloco.interval > 0) {
    const auto worker = std::make_shared<DilocoWorker>(c, world);
    return [worker](Loader& data, std::int64_t step) { worker->step(data, step, 1e-3); };
  }
  const auto bench = std::make_shared<Bench>(c, at::kFloat, world);
  return [bench](Loader& data, std::int64_t step) { bench->step(data, step, 1e-3); };
}

/// Bytes that a rank sends in a step, by name of the group.
std::map<std::string, double> counted(const config::Config& c, const PerAxis& degrees, std::int64_t rank) {
  std::map<std::string, double> out;
  run_ranks(degrees.product(), [&](Group& all) {
    const World world(all, Mesh(degrees));
    const auto step = trainer(c, world);
    SharedRows data(world.share(), false);
    step(data, 0);
    const TrafficByGroup before = traffic_of(all);
    step(data, 1);
    const TrafficByGroup after = traffic_of(all);
    if (all.rank() != rank) {
      return;
    }
    for (const auto& [name, traffic] : after) {
      const auto earlier = before.find(name);
      out[name] = static_cast<double>((earlier == before.end() ? traffic : traffic.since(earlier->second)).all_bytes());
    }
  });
  return out;
}

/// Wide rows of few tokens would be all weights; here every axis has something to send.
config::Config job() {
  config::Config c = small_config();
  c.model.dim = 64;
  c.model.n_layers = 3;
  c.model.n_heads = 4;
  c.model.n_kv_heads = 4;
  c.model.vocab_size = 128;
  c.train.seq_len = kLength;
  c.train.mixed_precision = "fp32";
  return c;
}

/// `axis` of the plan is counted under any of `names`, on a rank. What else goes over these groups are single numbers: norms, counts, what
/// a bucket has a gradient of.
void agrees(config::Config c, const PerAxis& degrees, const std::string& axis, const std::vector<std::string>& names,
            double tolerance = 0.02, std::int64_t rank = 0) {
  const std::int64_t readers = degrees.dp_replicate * degrees.dp_shard * degrees.ep;
  c.train.batch_size = kRows / readers;
  c.distributed.pp = degrees.pp;
  c.distributed.dp_replicate = degrees.dp_replicate;
  c.distributed.dp_shard = degrees.dp_shard;
  c.distributed.cp = degrees.cp;
  c.distributed.ep = degrees.ep;
  c.distributed.tp = degrees.tp;
  const Bench one(c);
  const plan::Weights weights = planned_weights(c, one.model->parameters());
  const std::int64_t stage = Mesh(degrees).coordinate(rank, Axis::pp);
  const double planned = plan::sent_along(plan::step_flows(c, weights, plan::Layout::of(c, degrees.product()), 8, stage), axis);
  const std::map<std::string, double> sent = counted(c, degrees, rank);
  double bytes = 0;
  std::string all;
  for (const auto& [name, count] : sent) {
    bytes += std::count(names.begin(), names.end(), name) > 0 ? count : 0;
    all += name + " " + std::to_string(count) + ", ";
  }
  CAPTURE(axis, planned, bytes, all);
  CHECK(planned > 0);
  CHECK(planned == Approx(bytes).epsilon(tolerance));
}

}  // namespace

TEST_CASE("planned traffic: what shards and replicas send is what is counted", "[plan]") {
  config::Config c = job();
  const std::vector<std::string> shards{"dp_shard", "shards"};
  SECTION("stages of dp_shard") {
    c.distributed.zero_stage = GENERATE(1, 2, 3);
    c.distributed.prefetch = GENERATE(true, false);
    CAPTURE(c.distributed.zero_stage, c.distributed.prefetch);
    agrees(c, {1, 1, 2, 1, 1, 1}, "dp_shard", shards);
  }
  SECTION("three micro-batches") {
    c.train.grad_accum_steps = 3;
    c.distributed.zero_stage = 3;
    c.distributed.reduce_each_micro = GENERATE(true, false);
    agrees(c, {1, 1, 2, 1, 1, 1}, "dp_shard", shards);
  }
  SECTION("gradients in bf16") {
    c.distributed.reduce_dtype = "bf16";
    c.distributed.zero_stage = 2;
    agrees(c, {1, 1, 4, 1, 1, 1}, "dp_shard", shards);
  }
  SECTION("replicas") { agrees(c, {1, 2, 2, 1, 1, 1}, "dp_replicate", {"dp_replicate"}); }
}

TEST_CASE("planned traffic: what tensor, context and expert parallelism send is what is counted", "[plan]") {
  config::Config c = job();
  SECTION("tensor parallelism") {
    c.distributed.sequence_parallel = GENERATE(true, false);
    CAPTURE(c.distributed.sequence_parallel);
    agrees(c, {1, 1, 1, 1, 1, 2}, "tp", {"tp"});
  }
  SECTION("tensor parallelism, recomputed") {
    c.train.activation_checkpointing = "full";
    agrees(c, {1, 1, 1, 1, 1, 2}, "tp", {"tp"});
  }
  SECTION("tensor parallelism with experts, and shared ones") {
    c.distributed.sequence_parallel = GENERATE(true, false);
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_shared_experts = GENERATE(0, 2);
    c.train.activation_checkpointing = GENERATE(as<std::string>{}, "none", "full");
    CAPTURE(c.distributed.sequence_parallel, c.model.moe_shared_experts, c.train.activation_checkpointing);
    agrees(c, {1, 1, 1, 1, 1, 2}, "tp", {"tp"});
  }
  SECTION("tensor parallelism with experts that are narrower, or stand beside a dense layer") {
    c.distributed.sequence_parallel = GENERATE(true, false);
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_shared_experts = GENERATE(0, 1);
    const bool beside = GENERATE(true, false);
    c.model.moe_beside_dense = beside;
    c.model.moe_input_dim = beside ? 0 : 32;
    CAPTURE(c.distributed.sequence_parallel, c.model.moe_shared_experts, beside);
    agrees(c, {1, 1, 1, 1, 1, 2}, "tp", {"tp"});
  }
  SECTION("a ring of context parallelism") {
    c.distributed.cp_method = GENERATE(as<std::string>{}, "ring", "all_gather");
    CAPTURE(c.distributed.cp_method);
    agrees(c, {1, 1, 1, 2, 1, 1}, "cp", {"cp"});
  }
  SECTION("experts") {
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    agrees(c, {1, 1, 1, 1, 2, 1}, "ep", {"ep"}, 0.15);  // the plan takes an even routing, which that of fresh weights is not
  }
}

TEST_CASE("planned traffic: keys and values that are gathered, also again where attention is computed again", "[plan]") {
  config::Config c = job();
  SECTION("latent attention sends its latent") {
    c.model.attention = "mla";
    c.model.mla_kv_rank = 32;
    c.model.mla_nope_dim = 16;
    c.model.mla_rope_dim = 16;
    c.model.mla_v_dim = 16;
  }
  SECTION("dropout of scores has no ring") { c.model.dropout_attn = 0.1; }
  SECTION("kept products are no messages") { c.train.activation_checkpointing = "selective"; }
  agrees(c, {1, 1, 1, 2, 1, 1}, "cp", {"cp"});
}

TEST_CASE("planned traffic: what stages hand on is what is counted, by every schedule and stage", "[plan]") {
  config::Config c = job();
  c.model.n_layers = 4;
  c.train.grad_accum_steps = 3;
  const std::vector<std::string> names{"pp", "pipeline_ends"};
  SECTION("schedules") {
    c.distributed.pp_schedule = GENERATE(as<std::string>{}, "gpipe", "1f1b", "interleaved_1f1b", "zero_bubble");
    c.distributed.pp_chunks = 2;
    CAPTURE(c.distributed.pp_schedule);
    agrees(c, {2, 1, 1, 1, 1, 1}, "pp", names);
  }
  SECTION("stages") {
    const std::int64_t rank = GENERATE(0, 1, 2);
    CAPTURE(rank);
    c.distributed.pp_layers = {1, 2, 1};
    agrees(c, {3, 1, 1, 1, 1, 1}, "pp", names, 0.02, rank);
  }
  SECTION("divided layers: of a split sequence each rank hands its positions on") {
    c.distributed.sequence_parallel = GENERATE(true, false);
    CAPTURE(c.distributed.sequence_parallel);
    agrees(c, {2, 1, 1, 1, 1, 2}, "pp", names);
    agrees(c, {2, 1, 1, 1, 1, 2}, "tp", {"tp"});
    agrees(c, {2, 1, 1, 1, 1, 2}, "tp", {"tp"}, 0.02, 2);
  }
  SECTION("an embedding on both ends") {
    c.model.tie_embeddings = true;
    const std::int64_t rank = GENERATE(0, 1);
    agrees(c, {2, 1, 1, 1, 1, 1}, "pp", names, 0.02, rank);
  }
}

TEST_CASE("planned traffic: what workers of DiLoCo exchange is what is counted, in every type", "[plan]") {
  config::Config c = job();
  c.diloco.interval = 1;
  c.diloco.exchange_dtype = GENERATE(as<std::string>{}, "fp32", "bf16", "int8");
  const std::int64_t shards = GENERATE(1, 2);
  CAPTURE(c.diloco.exchange_dtype, shards);
  agrees(c, {1, 3, shards, 1, 1, 1}, "dp_replicate", {"dp_replicate"});
}
