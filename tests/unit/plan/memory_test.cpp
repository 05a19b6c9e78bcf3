// What a rank takes, by arithmetic; against the allocator: tests/unit/train/memory_test.cpp and planned_memory_test.cpp.

#include "config/plan/rank_memory.h"
#include "unit/plan/model.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

config::Config job() {
  config::Config c;
  c.model.dim = 1024;
  c.model.n_layers = 16;
  c.model.n_heads = 16;
  c.model.n_kv_heads = 16;
  c.model.vocab_size = 1024;
  c.model.ffn_hidden_dim = 4096;
  c.train.batch_size = 1;
  c.train.seq_len = 512;
  c.train.mixed_precision = "bf16";
  c.eval.enabled = false;
  return c;
}

MemoryEstimate of(const config::Config& c, std::int64_t world, std::int64_t stage = 0) {
  return rank_memory(c, weights_of(c.model), Layout::of(c, world), stage);
}

}  // namespace

TEST_CASE("plan: dp_shard divides what its stage says", "[plan]") {
  config::Config c = job();
  const auto n = static_cast<double>(config::parameter_count(c.model));
  const double vectors = (2 * 16 + 1) * 1024.0;  // norms: fp32, and one tensor with their masters
  for (const std::int64_t stage : {1, 2, 3}) {
    c.distributed.zero_stage = stage;
    const MemoryEstimate e = of(c, 4);
    CAPTURE(stage);
    CHECK(e.of("optimizer (adamw)") == Approx(8 * n / 4));
    if (stage == 3) {
      CHECK(e.of("weights") == Approx(4 * n / 4));
      CHECK(e.of("16-bit weights") == 0);
      CHECK(e.of("gathered weights") > 0);
    } else {
      CHECK(e.of("weights") == Approx(4 * n / 4 + 3 * vectors).epsilon(1e-6));
      CHECK(e.of("16-bit weights") == Approx(2 * (n - vectors)));
      CHECK(e.of("gathered weights") == 0);
    }
  }
  c.distributed.dp_shard = 1;
  c.distributed.dp_replicate = 4;
  CHECK(of(c, 4).of("optimizer (adamw)") == Approx(8 * n));
}

TEST_CASE("plan: an optimizer that needs whole weights has them on owners, the fullest of which counts", "[plan]") {
  config::Config c = job();
  Weights weights;
  for (const std::int64_t rows : {4, 3, 2, 2}) {
    weights.all.push_back(weight("layers.0.w" + std::to_string(rows), {rows * 1024, 1024}));
    weights.all.back().whole = true;
  }
  c.distributed.zero_stage = 2;
  const MemoryEstimate e = rank_memory(c, weights, Layout::of(c, 2), 0);
  CHECK(e.of("optimizer (adamw)") == Approx(8 * 6 * 1024 * 1024.0));  // 4 and 2, or 3 and 2
}

TEST_CASE("plan: a stage holds the activations of as many micro-batches as are under way", "[plan]") {
  config::Config c = job();
  c.train.grad_accum_steps = 8;
  c.distributed.pp = 4;
  c.distributed.dp_shard = 1;
  const Layout layout = Layout::of(c, 4);
  const auto flying = [&](const char* schedule, std::int64_t stage, double micros) {
    c.distributed.pp_schedule = schedule;
    return in_flight(c.distributed, Layout::of(c, 4), stage, micros);
  };
  CHECK(flying("gpipe", 0, 8) == 8);
  CHECK(flying("1f1b", 0, 8) == 4);
  CHECK(flying("1f1b", 3, 8) == 1);
  CHECK(flying("1f1b", 0, 2) == 2);
  c.distributed.pp_chunks = 2;
  CHECK(flying("interleaved_1f1b", 0, 8) == Approx((2 * 3 + 4 + 1) / 2.0));
  c.distributed.pp_schedule = "1f1b";
  CHECK(of(c, 4, 0).of("activations") > of(c, 4, 2).of("activations"));
}

TEST_CASE("plan: tensor and context parallelism divide activations, a split sequence all of them", "[plan]") {
  const config::Config c = job();
  const auto spread = [&](double tp, bool split, double cp) {
    config::Spread out;
    out.tp = tp;
    out.split_sequence = split;
    out.cp = cp;
    return config::activation_bytes(c, 1, 512, true, {}, out);
  };
  const config::ActivationBytes one = spread(1, false, 1);
  CHECK(spread(1, false, 4).kept == Approx(one.kept / 4));
  const double split = spread(4, true, 1).kept, unsplit = spread(4, false, 1).kept;
  CHECK(split < unsplit);
  CHECK(unsplit < one.kept);
  CHECK(split > one.kept / 4);  // products keep their gathered inputs
  CHECK(spread(4, true, 1).logits == Approx(one.logits / 4));
}

TEST_CASE("plan: workers keep the outer weights and their momentum, each rank of its part", "[plan]") {
  config::Config c = job();
  c.distributed.dp_replicate = 2;
  CHECK(of(c, 4).of("outer weights (diloco)") == 0);
  c.diloco.interval = 10;
  CHECK(of(c, 4).of("outer weights (diloco)") == Approx(8 * static_cast<double>(config::parameter_count(c.model)) / 2));
}

TEST_CASE("plan: ranks of a machine together are every stage as often as it has ranks there", "[plan]") {
  config::Config c = job();
  c.distributed.pp = 2;
  c.distributed.dp_shard = 2;
  c.train.grad_accum_steps = 4;
  const Layout layout = Layout::of(c, 4);
  const Weights weights = weights_of(c.model);
  const double stages = rank_memory(c, weights, layout, 0).total() + rank_memory(c, weights, layout, 1).total();
  CHECK(ranks_together(c, weights, layout, {0, 4}).total() == Approx(2 * stages));
  CHECK(fullest_rank(c, weights, layout).total() <= stages);
  for (const std::int64_t stage : {0, 1}) {  // stages are farthest apart: a machine of two ranks has one
    CHECK(ranks_together(c, weights, layout, {2 * stage, 2}).total() == Approx(2 * rank_memory(c, weights, layout, stage).total()));
  }
  CHECK(ranks_together(c, weights, layout, {1, 2}).total() == Approx(stages));
}

}  // namespace kf::plan::test
