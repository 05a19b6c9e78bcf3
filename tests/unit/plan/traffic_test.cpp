// What ranks send each other, by arithmetic; against counted bytes: planned_traffic_test.cpp.

#include "plan/traffic.h"
#include "unit/plan/model.h"

#include <algorithm>

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

config::Config job() {
  config::Config c;
  c.model.dim = 512;
  c.model.n_layers = 4;
  c.model.n_heads = 8;
  c.model.n_kv_heads = 8;
  c.model.vocab_size = 1024;
  c.model.ffn_hidden_dim = 2048;
  c.train.batch_size = 2;
  c.train.seq_len = 128;
  c.train.mixed_precision = "fp32";
  c.distributed.dp_shard = 1;
  return c;
}

constexpr double kTokens = 2 * 128, kStream = kTokens * 512 * 4;

std::vector<Flow> flows(const config::Config& c, std::int64_t world, std::int64_t stage = 0) {
  return step_flows(c, weights_of(c.model), Layout::of(c, world), 8, stage);
}

double numbers(const config::Config& c) { return static_cast<double>(config::parameter_count(c.model)); }

}  // namespace

TEST_CASE("plan: one rank sends nothing", "[plan]") { CHECK(flows(job(), 1).empty()); }

TEST_CASE("plan: replicas sum all gradients; shards sum and gather, by stage", "[plan]") {
  config::Config c = job();
  c.distributed.dp_replicate = 4;
  CHECK(sent_along(flows(c, 4), "dp_replicate") == Approx(2 * 3 / 4.0 * 4 * numbers(c)));
  c.distributed.dp_replicate = 1;
  c.distributed.dp_shard = 4;
  c.distributed.zero_stage = 1;
  CHECK(sent_along(flows(c, 4), "dp_shard") == Approx(2 * 3 / 4.0 * 4 * numbers(c)));
  c.distributed.zero_stage = 3;
  c.distributed.prefetch = false;
  const double blocks = numbers(c) - 2 * 1024.0 * 512 - 512;
  CHECK(sent_along(flows(c, 4), "dp_shard") == Approx(3 / 4.0 * 4 * (2 * numbers(c) + blocks)));
  c.train.grad_accum_steps = 3;  // blocks are gathered twice a micro-batch, gradients summed once
  CHECK(sent_along(flows(c, 4), "dp_shard") == Approx(3 / 4.0 * 4 * (2 * numbers(c) + 5 * blocks)));
  c.distributed.prefetch = true;  // the last block stays from forward to backward
  CHECK(sent_along(flows(c, 4), "dp_shard") == Approx(3 / 4.0 * 4 * (2 * numbers(c) + (5 - 3 / 4.0) * blocks)));
  c.distributed.reduce_dtype = "bf16";
  CHECK(sent_along(flows(c, 4), "dp_shard") == Approx(3 / 4.0 * 4 * (1.5 * numbers(c) + (5 - 3 / 4.0) * blocks)));
}

TEST_CASE("plan: both together sum the parts over the replicas", "[plan]") {
  config::Config c = job();
  c.distributed.dp_replicate = 2;
  c.distributed.dp_shard = 4;
  CHECK(sent_along(flows(c, 8), "dp_replicate") == Approx(numbers(c)));  // 2 * 1/2 * 4 bytes * a quarter
}

TEST_CASE("plan: tensor parallelism sends a hidden state twice a branch and pass, whether the sequence is split or not", "[plan]") {
  config::Config c = job();
  c.distributed.tp = 4;
  const double split = sent_along(flows(c, 4), "tp");
  c.distributed.sequence_parallel = false;
  const double unsplit = sent_along(flows(c, 4), "tp");
  CHECK(split == Approx(unsplit).epsilon(0.05));
  CHECK(split > 3 / 4.0 * kStream * 4 * 2 * 4);  // four layers, two branches, in and out, forward and backward
  CHECK(split < 3 / 4.0 * kStream * (4 * 2 * 4 + 6));
}

TEST_CASE("plan: stages hand hidden states on, the middle ones both ways twice", "[plan]") {
  config::Config c = job();
  c.distributed.pp = 3;
  c.distributed.pp_layers = {1, 1, 2};
  c.train.grad_accum_steps = 5;
  CHECK(sent_along(flows(c, 3, 0), "pp") == Approx(5 * kStream));
  CHECK(sent_along(flows(c, 3, 1), "pp") == Approx(10 * kStream));
  CHECK(sent_along(flows(c, 3, 2), "pp") == Approx(5 * kStream));
}

TEST_CASE("plan: of a split sequence each rank hands its positions on, and nothing is gathered between stages", "[plan]") {
  config::Config c = job();
  c.distributed.tp = 4;
  const double alone = sent_along(flows(c, 4), "tp");
  c.distributed.pp = 2;
  CHECK(sent_along(flows(c, 8), "pp") == Approx(kStream / 4));
  CHECK(sent_along(flows(c, 8, 0), "tp") + sent_along(flows(c, 8, 1), "tp") == Approx(alone));
  c.distributed.sequence_parallel = false;
  CHECK(sent_along(flows(c, 8), "pp") == Approx(kStream));
}

TEST_CASE("plan: axes are over the links that the mesh's order gives them", "[plan]") {
  config::Config c = job();
  c.distributed.tp = 4;
  c.distributed.dp_shard = 2;
  c.distributed.pp = 2;
  const std::vector<Flow> all = flows(c, 16);
  const auto link = [&](const std::string& axis) {
    return std::find_if(all.begin(), all.end(), [&](const Flow& flow) { return flow.axis == axis; })->reach.link();
  };
  CHECK(link("tp") == "node");
  CHECK(link("dp_shard") == "node");
  CHECK(link("pp") == "network");
}

TEST_CASE("plan: experts get tokens and give them back, forward and backward", "[plan]") {
  config::Config c = job();
  c.model.num_experts = 8;
  c.model.moe_top_k = 2;
  c.model.moe_frequency = 1;
  c.model.moe_ffn_dim = 256;
  c.distributed.ep = 4;
  CHECK(sent_along(flows(c, 4), "ep") == Approx(3 / 4.0 * kStream * 2 * 4 * 4));  // top 2, four layers, four times
  c.train.activation_checkpointing = "full";
  CHECK(sent_along(flows(c, 4), "ep") == Approx(3 / 4.0 * kStream * 2 * 4 * 6));
}

TEST_CASE("plan: workers exchange once in a while what they moved, and no gradients", "[plan]") {
  config::Config c = job();
  c.distributed.dp_replicate = 4;
  c.diloco.interval = 100;
  CHECK(sent_along(flows(c, 4), "dp_replicate") == Approx(2 * 3 / 4.0 * 4 * numbers(c) / 100));
  c.diloco.exchange_dtype = "bf16";
  CHECK(sent_along(flows(c, 4), "dp_replicate") == Approx(2 * 3 / 4.0 * 2 * numbers(c) / 100));
  c.diloco.exchange_dtype = "int8";  // not added up on its way: each worker sends its own to three, with a scale for each 64 numbers
  CHECK(sent_along(flows(c, 4), "dp_replicate") == Approx(3 * 17 / 16.0 * numbers(c) / 100));
}

TEST_CASE("plan: where no ring is possible keys and values are gathered, of latent attention the latent", "[plan]") {
  config::Config c = job();
  c.distributed.cp = 4;
  const double each = kTokens / 4 * 2 * 512 * 4;                           // keys and values of a rank's positions in a layer
  CHECK(sent_along(flows(c, 4), "cp") == Approx(4 * each * (3 + 3 + 4)));  // four layers; twice round, and their gradients home again
  c.model.dropout_attn = 0.1;
  CHECK(sent_along(flows(c, 4), "cp") == Approx(4 * each * (3 + 3)));
  c.model.dropout_attn = 0;
  c.model.attention = "mla";
  c.model.mla_kv_rank = 48;
  c.model.mla_rope_dim = 16;
  CHECK(sent_along(flows(c, 4), "cp") == Approx(4 * kTokens / 4 * 64 * 4 * (3 + 3)));
}

TEST_CASE("plan: what a branch sends is sent again where the branch is computed again, whatever products are kept", "[plan]") {
  config::Config c = job();
  c.distributed.cp = 2;
  const auto sent = [&](const char* policy, std::vector<std::string> kept) {
    c.train.activation_checkpointing = policy;
    c.train.remat_save = std::move(kept);
    return sent_along(flows(c, 2), "cp");
  };
  const double once = sent("none", {});
  CHECK(sent("selective", {"attention"}) == Approx(once));
  CHECK(sent("full", {}) > once);
  CHECK(sent("selective", {}) == Approx(sent("full", {})));
  CHECK(sent("selective", {"context"}) == Approx(sent("full", {})));
}

}  // namespace kf::plan::test
