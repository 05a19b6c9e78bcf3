// Every optimizer goes on after a restart as if nothing had happened.

#include <ATen/ATen.h>

#include "checkpoint/manager.h"
#include "optim/averaging.h"
#include "support/checkpoints.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

config::Config config_with(const std::string& optimizer) {
  config::Config config = tiny_config();
  config.optimizer.name = optimizer;
  config.optimizer.sgd_momentum = 0.9;
  config.train.skip_spikes = true;
  return config;
}

/// Five updates and one more, with or without a checkpoint between them; all state tensors at the end.
void compare(const config::Config& config, at::ScalarType compute) {
  const double lr = config.optimizer.name == "scion" ? 1e-6 : 1e-3;
  const test::TempDir temp;
  FixedLoader data(random_tokens(12, 32, 3), random_tokens(12, 32, 4), 2);
  Bench straight(config, compute);
  for (std::int64_t step = 0; step < 5; ++step) {
    straight.step(data, step, lr);
  }
  CheckpointOptions options;
  options.dir = temp / "checkpoints";
  CheckpointState state;
  state.run.step = 5;
  state.values[kTrain] = straight.stepper->state();
  const fs::path saved = test::save(options, state, *straight.model, *straight.optimizer);
  straight.step(data, 5, lr);

  config::Config other = config;
  other.train.seed = 7;
  Bench resumed(other, compute);
  resumed.stepper->load(value_at(test::load(saved, *resumed.model, *resumed.optimizer).values, kTrain));
  resumed.step(data, 5, lr);
  CHECK(bitwise_equal(resumed.masters(), straight.masters()));
  CHECK(resumed.stepper->state() == straight.stepper->state());
  const OptimizerState a = resumed.optimizer->state();
  const OptimizerState b = straight.optimizer->state();
  CHECK(a.integers == b.integers);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    CAPTURE(name);
    CHECK(at::equal(tensor, b.tensors.at(name)));
  }
}

}  // namespace

TEST_CASE("resume: every optimizer goes on bit for bit", "[optim][H36]") {
  const std::string name = GENERATE("sgdm", "cautious_adamw", "mars", "adopt", "adam_mini", "scion", "rmsprop", "sophia_h", "adamw", "muon",
                                    "lion", "schedule_free_adamw");
  CAPTURE(name);
  compare(config_with(name), at::kFloat);
}

TEST_CASE("resume: an optimizer that keeps nothing goes on, too", "[optim][H36]") {
  config::Config config = config_with("sgdm");
  config.optimizer.sgd_momentum = 0;
  compare(config, at::kFloat);
}

TEST_CASE("resume: moments in bf16 and in 8 bits, clipped updates and weights without masters go on bit for bit", "[optim][H36]") {
  config::Config config = config_with("adamw");
  SECTION("moments in bf16") {
    config.optimizer.state_dtype_m = "bf16";
    config.optimizer.state_dtype_v = "bf16";
    compare(config, at::kFloat);
  }
  SECTION("moments in 8 bits") {
    config.model.dim = 64;  // matrices of 4096 numbers
    config.optimizer.state_dtype_m = config.optimizer.state_dtype_v = GENERATE("int8", "fp8");
    compare(config, at::kFloat);
  }
  SECTION("clipped by the norms before") {
    config.optimizer.update_norm_window = 4;
    config.optimizer.update_norm_sigma = 0.1;
    compare(config, at::kFloat);
  }
  SECTION("bf16 weights") {
    config.optimizer.name = GENERATE("adamw", "schedule_free_adamw");  // a checkpoint holds the second one's averages
    config.train.mixed_precision = "bf16";
    config.train.param_dtype = "bf16";
    compare(config, at::kBFloat16);
  }
}

}  // namespace kf::test
