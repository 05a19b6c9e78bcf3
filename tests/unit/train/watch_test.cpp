// metrics.watch: norms as numbers of a row.

#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "support/tiny.h"
#include "train/step/watch.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

config::MetricsConfig watching(bool per_param = false) {
  config::MetricsConfig metrics;
  metrics.watch = {"grads", "params", "updates", "opt_state", "activations"};
  metrics.watch_interval = 4;
  metrics.watch_per_param = per_param;
  return metrics;
}

double norm_of(const std::vector<at::Tensor>& tensors) {
  double squares = 0;
  for (const at::Tensor& tensor : tensors) {
    squares += tensor.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

/// Root of the sum of squares of "PREFIX..." in `numbers`.
double joined(const std::map<std::string, double>& numbers, const std::string& prefix) {
  double squares = 0;
  for (const auto& [name, value] : numbers) {
    squares += name.starts_with(prefix) ? value * value : 0;
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("watch: a layer's name goes up to the first number of a weight's", "[watch]") {
  CHECK(layer_of("layers.3.attention.q_proj.weight") == "layers.3");
  CHECK(layer_of("mtp.0.block.layers.1.x") == "mtp.0");
  CHECK(layer_of("output_head.proj.weight") == "output_head");
  CHECK(layer_of("norm") == "norm");
}

TEST_CASE("watch: gradients, weights, updates, state and activations have their norms, which add up to the whole", "[watch]") {
  const bool per_param = GENERATE(false, true);
  Bench bench(tiny_config());
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 4);
  Watch watch(watching(per_param), bench.model->parameters(), *bench.optimizer);
  CHECK(watch.due(4));
  CHECK_FALSE(watch.due(5));
  const std::vector<at::Tensor> before = bench.masters();
  Stepper::Callbacks callbacks;
  callbacks.watch = &watch;
  const StepResult result = bench.stepper->run(data, 0, 1e-2, callbacks);
  const Values values = watch.take();
  std::map<std::string, double> numbers(values.begin(), values.end());
  const std::vector<at::Tensor> after = bench.masters();
  std::vector<at::Tensor> moved;
  for (std::size_t i = 0; i < after.size(); ++i) {
    moved.push_back(after[i] - before[i]);
  }
  constexpr double kRounding = 1e-4;  // sums of some ten thousand squares in fp32
  CHECK(numbers.at("watch/grads") == Approx(result.grad_norm).epsilon(kRounding));
  CHECK(numbers.at("watch/params") == Approx(norm_of(after)).epsilon(kRounding));
  CHECK(numbers.at("watch/updates") == Approx(norm_of(moved)).epsilon(kRounding));
  for (const char* kind : {"watch/grads", "watch/params", "watch/updates", "watch/opt_state/exp_avg"}) {
    CAPTURE(kind);
    CHECK(joined(numbers, std::string(kind) + "/") == Approx(numbers.at(kind)).epsilon(kRounding));
  }
  CHECK(numbers.contains(per_param ? "watch/grads/layers.0.attention.q_proj.weight" : "watch/grads/layers.0"));
  CHECK(numbers.contains("watch/activations/layers.0"));
  CHECK(numbers.contains("watch/activations/embed"));
  CHECK_FALSE(numbers.contains("watch/activations"));
  CHECK(numbers.at("watch/activations/norm") == Approx(1).epsilon(0.01));  // RMSNorm with weights of 1, but for eps
}

TEST_CASE("watch: a skipped update has no norm, and what is not watched is not there", "[watch]") {
  Bench bench(tiny_config());
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 4);
  config::MetricsConfig metrics;
  metrics.watch = {"grads", "updates"};
  Watch watch(metrics, bench.model->parameters(), *bench.optimizer);
  Stepper::Callbacks callbacks;
  callbacks.watch = &watch;
  callbacks.backward_end = [](StepResult& result) {
    result.skipped = "by a hook";
    return false;
  };
  bench.stepper->run(data, 0, 1e-2, callbacks);
  for (const auto& [name, value] : watch.take()) {
    CHECK(name.starts_with("watch/grads"));
  }
  CHECK_FALSE(Watch({}, bench.model->parameters(), *bench.optimizer).due(10));
}
