// The time of a step, as the sum of what a rank does and waits for.

#include "plan/step.h"
#include "unit/plan/model.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

config::Config job() {
  config::Config c;
  c.model.dim = 4096;
  c.model.n_layers = 32;
  c.model.n_heads = 32;
  c.model.n_kv_heads = 8;
  c.model.ffn_hidden_dim = 14336;
  c.model.vocab_size = 32000;
  c.train.batch_size = 1;
  c.train.grad_accum_steps = 8;
  c.train.seq_len = 8192;
  c.train.mixed_precision = "bf16";
  c.distributed.dp_shard = 1;
  return c;
}

StepPlan plan(const config::Config& c, std::int64_t world, const Gpu& gpu = gpu_named("h100")) {
  return plan_step(c, weights_of(c.model), Layout::of(c, world), gpu);
}

double sum(const StepTime& t) { return t.computing + t.waiting + t.bubble + t.sharing + t.updating; }

}  // namespace

TEST_CASE("plan: the parts of a step are the step, and MFU what its tokens are worth", "[plan]") {
  config::Config c = job();
  for (const std::int64_t world : {1, 8, 16}) {
    c.distributed.dp_shard = world;
    const StepPlan p = plan(c, world);
    CAPTURE(world);
    CHECK(sum(p.time) == Approx(p.time.total));
    CHECK(p.tokens == 8 * 8192.0 * static_cast<double>(world));
    CHECK(p.mfu == Approx(p.tokens / p.time.total * config::flops_per_token(c.model, 8192) / (989e12 * static_cast<double>(world))));
    CHECK(p.mfu > 0.3);
    CHECK(p.mfu < 0.8);
  }
}

TEST_CASE("plan: more micro-batches shrink the bubble, and a bubble is what its schedule leaves", "[plan]") {
  config::Config c = job();
  c.distributed.pp = 4;
  c.distributed.pp_layers = {8, 8, 8, 8};
  c.model.vocab_size = 16;  // no head to speak of: all stages alike
  const auto share = [&](const char* schedule, std::int64_t micros) {
    c.distributed.pp_schedule = schedule;
    c.train.grad_accum_steps = micros;
    return plan(c, 4).bubble_share;
  };
  CHECK(share("1f1b", 8) == Approx(3.0 / 11).epsilon(0.03));
  CHECK(share("gpipe", 8) == Approx(3.0 / 11).epsilon(0.03));
  CHECK(share("1f1b", 64) == Approx(3.0 / 67).epsilon(0.1));
  CHECK(share("zero_bubble", 8) < share("1f1b", 8));
  c.distributed.pp_layers = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  c.distributed.pp_chunks = 4;
  CHECK(share("interleaved_1f1b", 8) == Approx(3.0 / 4 / (8 + 3.0 / 4)).epsilon(0.1));
}

TEST_CASE("plan: what overlaps costs nothing until it is slower than what it overlaps", "[plan]") {
  config::Config c = job();
  c.distributed.dp_shard = 8;
  Gpu gpu = gpu_named("h100");
  const StepPlan fast = plan(c, 8, gpu);
  c.distributed.prefetch = false;
  const StepPlan plain = plan(c, 8, gpu);
  CHECK(fast.time.total < plain.time.total);
  CHECK(plain.time.waiting > fast.time.waiting);
  c.distributed.prefetch = true;
  gpu.node_bandwidth /= 100;
  CHECK(plan(c, 8, gpu).time.total > 1.5 * fast.time.total);
}

TEST_CASE("plan: across machines tensor parallelism is slower than inside of one", "[plan]") {
  config::Config c = job();
  c.distributed.tp = 8;
  Gpu gpu = gpu_named("h100");
  const double inside = plan(c, 8, gpu).time.total;
  gpu.node = 4;
  CHECK(plan(c, 8, gpu).time.total > 1.3 * inside);
}

}  // namespace kf::plan::test
