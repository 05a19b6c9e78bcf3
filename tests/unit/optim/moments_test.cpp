// H36, H9: what a checkpoint gives back.

#include <ATen/ATen.h>

#include <catch2/catch.hpp>

#include "checkpoint/manager.h"
#include "support/checkpoints.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

namespace kf::cases {
using namespace kf::test;
namespace {

config::Config config_with(const std::string& optimizer) {
  config::Config config = tiny_config();
  config.optimizer.name = optimizer;
  config.optimizer.lr = optimizer == "lion" ? 1e-3 : 1e-2;
  config.optimizer.schedule_free_warmup_steps = 3;
  return config;
}

std::vector<at::Tensor> state_of(const Bench& bench) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    out.push_back(tensor.detach().clone());
  }
  return out;
}

}  // namespace

TEST_CASE("checkpoint: one more update after a resume equals the uninterrupted one bit for bit, and weights alone do not", "[cases][H36]") {
  const std::string name = GENERATE("adamw", "lion", "muon", "schedule_free_adamw");
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  CAPTURE(name, compute);
  const test::TempDir temp;
  FixedLoader data(random_tokens(12, 32, 3), random_tokens(12, 32, 4), 2);
  const double lr = config_with(name).optimizer.lr;

  Bench straight(config_with(name), compute);
  for (std::int64_t step = 0; step < 5; ++step) {
    straight.step(data, step, lr);
  }
  CheckpointOptions options;
  options.dir = temp / "checkpoints";
  CheckpointState state;
  state.run.step = 5;
  const fs::path saved = test::save(options, state, *straight.model, *straight.optimizer);
  const std::vector<at::Tensor> masters = straight.masters();
  straight.step(data, 5, lr);

  config::Config other = config_with(name);
  other.train.seed = 7;  // nothing of a fresh start may survive the load
  Bench resumed(other, compute);
  CHECK(test::load(saved, *resumed.model, *resumed.optimizer).run.step == 5);
  CHECK(bitwise_equal(resumed.masters(), masters));  // masters are stored, not made again from bf16
  resumed.step(data, 5, lr);
  CHECK(bitwise_equal(resumed.masters(), straight.masters()));
  CHECK(bitwise_equal(state_of(resumed), state_of(straight)));

  Bench bare(other, compute);
  load_weights(saved, *bare.model);
  bare.step(data, 5, lr);
  CHECK_FALSE(bitwise_equal(bare.masters(), straight.masters()));
}

TEST_CASE("checkpoint: saving changes nothing for the run that goes on", "[cases][H36]") {
  const std::string name = GENERATE("adamw", "lion", "muon", "schedule_free_adamw");
  CAPTURE(name);
  const test::TempDir temp;
  FixedLoader data(random_tokens(12, 32, 3), random_tokens(12, 32, 4), 2);
  CheckpointOptions options;
  options.dir = temp / "checkpoints";
  const auto train = [&](bool saving) {
    Bench bench(config_with(name));
    for (std::int64_t step = 0; step < 4; ++step) {
      bench.step(data, step, 1e-2);
      if (saving) {
        CheckpointState state;
        state.run.step = step + 1;
        test::save(options, state, *bench.model, *bench.optimizer);
      }
    }
    return bench.masters();
  };
  CHECK(bitwise_equal(train(true), train(false)));
}

}  // namespace kf::cases
