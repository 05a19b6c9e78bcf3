// bf16 against fp32, fp16 with its loss scale, weights without masters.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

/// Sequences with something to learn: each token follows from the one before.
FixedLoader counting(std::int64_t rows) {
  const at::Tensor first = random_tokens(rows, 1, 5);
  const at::Tensor stride = random_tokens(rows, 1, 6, 3) + 1;
  const at::Tensor all = (first + stride * at::arange(33)).remainder(kTinyVocab);
  return FixedLoader(all.narrow(1, 0, 32), all.narrow(1, 1, 32), 4);
}

std::vector<double> losses(const std::string& precision, std::int64_t steps, const std::string& param_dtype = "fp32",
                           const std::function<void(Bench&)>& before = {}) {
  config::Config config = tiny_config();
  config.train.mixed_precision = precision;
  config.train.param_dtype = param_dtype;
  const at::ScalarType compute = precision == "bf16" ? at::kBFloat16 : precision == "fp16" ? at::kHalf : at::kFloat;
  Bench bench(config, compute);
  if (before) {
    before(bench);
  }
  FixedLoader data = counting(64);
  std::vector<double> out;
  for (std::int64_t step = 0; step < steps; ++step) {
    out.push_back(bench.step(data, step, 3e-3 * std::min(1.0, static_cast<double>(step + 1) / 20)).ce);
  }
  return out;
}

/// Mean difference over the last 50 steps as a share of what the loss fell by: the text is learned by heart, so the loss itself goes to 0.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  for (std::size_t i = a.size() - 50; i < a.size(); ++i) {
    difference += (a[i] - b[i]) / 50;
  }
  return std::fabs(difference) / (b.front() - b.back());
}

/// How far a run in fp32 goes astray, measured as above, when each of its weights is moved once by up to `u` of itself at the start. What
/// is rounded at every step is not bounded by that in theory, but it is a measure of how much this text and this processor make of the last
/// bits of a type with unit roundoff u. The largest of three draws.
double sensitivity(double u, const std::vector<double>& reference) {
  double worst = 0;
  for (const std::int64_t seed : {1, 2, 3}) {
    worst = std::max(worst, distance(losses("fp32", 300, "fp32",
                                            [&](Bench& bench) {
                                              at::manual_seed(static_cast<std::uint64_t>(seed));
                                              for (const ParameterPtr& parameter : bench.model->parameters()) {
                                                const at::NoGradGuard no_grad;
                                                parameter->master.mul_(1 + u * (2 * at::rand_like(parameter->master) - 1));
                                              }
                                            }),
                                     reference));
  }
  return worst;
}

}  // namespace

TEST_CASE("precision: 300 steps of bf16 and fp16 with fp32 masters follow the fp32 loss", "[precision]") {
  const std::vector<double> reference = losses("fp32", 300);
  CHECK(reference.back() < 0.6 * reference.front());
  const double bf16 = distance(losses("bf16", 300), reference);
  const double fp16 = distance(losses("fp16", 300), reference);
  std::cout << "300 steps against fp32 (difference over the last 50 as a share of the fall from " << reference.front() << " to "
            << reference.back() << "): bf16 " << 100 * bf16 << " %, fp16 " << 100 * fp16 << " %\n";
  // The loss itself is computed from logits of the type (u of it), and the weights end where a disturbance of that size leads.
  const double bf16_unit = std::ldexp(1.0, -8), fp16_unit = std::ldexp(1.0, -11);
  const double bf16_strays = sensitivity(bf16_unit, reference), fp16_strays = sensitivity(fp16_unit, reference);
  std::cout << "the same in fp32, disturbed once: by bf16's unit " << 100 * bf16_strays << " %, by fp16's " << 100 * fp16_strays << " %\n";
  CHECK(bf16 < bf16_unit + 3 * bf16_strays);
  CHECK(fp16 < fp16_unit + 3 * fp16_strays);
}

TEST_CASE("precision: bf16 weights without masters train, and their states are fp32", "[precision]") {
  const std::vector<double> values = losses("bf16", 60, "bf16");
  CHECK(values.back() < values.front());
  config::Config config = tiny_config();
  config.train.mixed_precision = "bf16";
  config.train.param_dtype = "bf16";
  config.optimizer.name = GENERATE("adamw", "lion", "muon", "schedule_free_adamw", "sgdm", "adopt");
  Bench bench(config, at::kBFloat16);
  FixedLoader data = counting(16);
  const std::vector<at::Tensor> before = bench.masters();
  bench.step(data, 0, 1e-2);
  bench.step(data, 1, 1e-2);
  CHECK_FALSE(bitwise_equal(bench.masters(), before));
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    CHECK(parameter->master.scalar_type() == (parameter->shape.size() > 1 ? at::kBFloat16 : at::kFloat));
    CHECK(parameter->value.is_same(parameter->master));
  }
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    CHECK(tensor.scalar_type() == at::kFloat);
  }
}

TEST_CASE("precision: an overflow of fp16 skips the update and halves the scale, which a restart keeps", "[precision]") {
  config::Config config = tiny_config();
  config.train.mixed_precision = "fp16";
  config.train.loss_scale = 1e12;
  Bench bench(config, at::kHalf);
  FixedLoader data = counting(16);
  const std::vector<at::Tensor> before = bench.masters();
  const StepResult result = bench.step(data, 0, 1e-2);
  CHECK(result.skipped.find("a gradient overflowed fp16 at loss scale 1000000000000; it is now 500000000000") == 0);
  CHECK(result.abort.empty());
  CHECK(bitwise_equal(bench.masters(), before));
  Bench resumed(config, at::kHalf);
  resumed.stepper->load(bench.stepper->state());
  CHECK(*resumed.stepper->state().table()->find("loss_scale") == config::Node(5e11));
}

TEST_CASE("precision: moments in bf16 take half the memory and follow those in fp32", "[precision]") {
  config::Config config = tiny_config();
  config.optimizer.state_dtype_m = "bf16";
  config.optimizer.state_dtype_v = "bf16";
  Bench low(config), high(tiny_config());
  FixedLoader data = counting(16);
  for (std::int64_t step = 0; step < 5; ++step) {
    low.step(data, step, 1e-3);
    high.step(data, step, 1e-3);
  }
  const OptimizerState state = low.optimizer->state();
  CHECK(state.tensors.at("exp_avg.norm.weight").scalar_type() == at::kBFloat16);
  CHECK(state.tensors.at("exp_avg_sq.norm.weight").scalar_type() == at::kBFloat16);
  CHECK(state.tensors.at("step.norm.weight").scalar_type() == at::kFloat);
  for (std::size_t i = 0; i < low.masters().size(); ++i) {
    CHECK(relative_difference(low.masters()[i], high.masters()[i]) < 2e-2);
  }
}

}  // namespace kf::test
