// Planned traffic against the bytes that the groups count, axis by axis.

#include <ATen/ATen.h>

#include <algorithm>

#include "parallel/thread_ranks.h"
#include "parallel/traffic.h"
#include "plan/traffic.h"
#include "train/loop/planned_weights.h"
#include "unit/layout/equal_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Bytes that rank 0 sends in a step, by name of the group.
std::map<std::string, double> counted(const config::Config& c, const PerAxis& degrees) {
  std::map<std::string, double> out;
  run_ranks(degrees.product(), [&](Group& all) {
    const World world(all, Mesh(degrees));
    Bench bench(c, at::kFloat, world);
    SharedRows data(world.share(), false);
    bench.step(data, 0, 1e-3);
    const TrafficByGroup before = traffic_of(all);
    bench.step(data, 1, 1e-3);
    const TrafficByGroup after = traffic_of(all);
    if (all.rank() != 0) {
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

/// `axis` of the plan is counted under any of `names`. What else goes over these groups are single numbers: norms, counts, what a bucket
/// has a gradient of.
void agrees(config::Config c, const PerAxis& degrees, const std::string& axis, const std::vector<std::string>& names,
            double tolerance = 0.02) {
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
  const double planned = plan::sent_along(plan::step_flows(c, weights, plan::Layout::of(c, degrees.product()), 8, 0), axis);
  const std::map<std::string, double> sent = counted(c, degrees);
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
