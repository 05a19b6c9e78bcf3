// Moments of AdamW in 8 bits: that a run learns with them, goes on with them, and says what they take.

#include <ATen/ATen.h>

#include <cmath>
#include <iostream>

#include "optim/adamw.h"
#include "optim/state_bytes.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

/// Wide enough that all matrices but the embedding are in 8 bits.
config::Config config_of(const std::string& dtype) {
  config::Config config = tiny_config();
  config.model.dim = 64;
  config.model.vocab_size = kTinyVocab;
  config.optimizer.state_dtype_m = dtype;
  config.optimizer.state_dtype_v = dtype;
  return config;
}

/// Sequences with something to learn: each token follows from the one before.
FixedLoader counting() {
  const at::Tensor first = random_tokens(64, 1, 5), stride = random_tokens(64, 1, 6, 3) + 1;
  const at::Tensor all = (first + stride * at::arange(33)).remainder(kTinyVocab);
  return FixedLoader(all.narrow(1, 0, 32), all.narrow(1, 1, 32), 4);
}

/// Mean loss of the first step, and of the last 50 of 300.
std::pair<double, double> trained(const std::string& dtype, std::uint64_t seed) {
  config::Config config = config_of(dtype);
  config.train.seed = static_cast<std::int64_t>(seed);
  Bench bench(config);
  FixedLoader data = counting();
  double first = 0, last = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    const double ce = bench.step(data, step, 3e-3 * std::min(1.0, static_cast<double>(step + 1) / 20)).ce;
    first = step == 0 ? ce : first;
    last += step < 250 ? 0 : ce / 50;
  }
  return {first, last};
}

}  // namespace

TEST_CASE("moments in 8 bits: 300 steps end where those with fp32 moments do", "[optim][int8]") {
  const auto [first, reference] = trained("fp32", 1);
  const double bytes = trained("int8", 1).second, floats = trained("fp8", 1).second, another = trained("fp32", 2).second;
  std::cout << "300 steps, mean loss of the last 50: from " << first << " to " << reference << " (fp32), " << bytes << " (int8), " << floats
            << " (fp8), " << another << " (fp32 from another seed)\n";
  CHECK(reference < 0.5 * first);
  // The margin: 2 % of what the loss falls by.
  CHECK(std::fabs(bytes - reference) < 0.02 * (first - reference));
  CHECK(std::fabs(floats - reference) < 0.02 * (first - reference));
}

TEST_CASE("moments in 8 bits: small weights and embeddings stay fp32, the rest takes a byte a number", "[optim][int8]") {
  const bool as_floats = GENERATE(false, true);
  const config::Config config = config_of(as_floats ? "fp8" : "int8");
  const at::ScalarType type = as_floats ? at::kFloat8_e4m3fn : at::kChar;
  Bench bench(config);
  FixedLoader data = counting();
  bench.step(data, 0, 1e-3);
  const ParameterList parameters = bench.model->parameters();
  const OptimizerBytes estimate = optimizer_bytes(config, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = *parameters[i];
    CAPTURE(p.name);
    const auto n = static_cast<double>(p.numel());
    const bool wide = n < 4096 || p.role == Role::embedding;
    CHECK(estimate.each[i] == (wide ? 8 * n : 2 * (n + 4 * std::ceil(n / 256))) + 4);
    CHECK(state_type_of(p, type) == (wide ? at::kFloat : type));
  }
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {  // as files hold it
    CHECK(tensor.scalar_type() == at::kFloat);
  }
}

/// How far numbers may be off that are stored in 8 bits.
at::Tensor step_of(const std::string& dtype, const std::string& name, const at::Tensor& numbers) {
  const at::Tensor largest = numbers.abs().max();
  if (dtype == "int8") {
    return 0.0071 * largest;  // a step of the map is 0.0141 between 0.1 and 1, and half of it is the most that a number is off
  }
  // Half a step of the last bit, but for the smallest numbers; squares that would be 0 become the smallest.
  return name.starts_with("exp_avg_sq.") ? 0x1p-3 * numbers.abs() + 0x1p-31 * largest : 0x1p-4 * numbers.abs() + 0x1p-18 * largest;
}

TEST_CASE("moments in 8 bits: a state of another type is taken over, and theirs by another type", "[optim][int8]") {
  const auto [from, to] =
      GENERATE(table<std::string, std::string>({{"fp32", "int8"}, {"int8", "fp32"}, {"fp32", "fp8"}, {"fp8", "fp32"}, {"int8", "fp8"}}));
  Bench before(config_of(from)), after(config_of(to));
  FixedLoader data = counting();
  for (std::int64_t step = 0; step < 3; ++step) {
    before.step(data, step, 1e-3);
  }
  after.optimizer->load(before.optimizer->state());
  const OptimizerState a = before.optimizer->state(), b = after.optimizer->state();
  for (const auto& [name, tensor] : a.tensors) {
    CAPTURE(name);
    const at::Tensor off = (b.tensors.at(name) - tensor).abs();
    CHECK((off <= (to == "fp32" ? at::zeros({}) : step_of(to, name, tensor))).all().item<bool>());
  }
}

TEST_CASE("adamw: it writes what forward reads with the master, and the next publish copies only what has moved since", "[optim]") {
  config::Config config = config_of("fp32");
  config.train.mixed_precision = "bf16";
  Bench bench(config, at::kBFloat16);
  FixedLoader data = counting();
  bench.step(data, 0, 1e-2);
  for (const ParameterPtr& p : bench.model->parameters()) {
    CHECK(at::equal(p->value.detach(), p->master.detach().to(p->value.scalar_type())));
    p->set_gradient(at::ones_like(p->master.detach()));
  }
  bench.optimizer->step(1e-2);
  for (const ParameterPtr& p : bench.model->parameters()) {
    CHECK(at::equal(p->value.detach(), p->master.detach().to(p->value.scalar_type())));
    p->master.detach().add_(1);  // as a rule that follows the update
    p->publish();
    CHECK(at::equal(p->value.detach(), p->master.detach().to(p->value.scalar_type())));
    p->clear_gradient();
  }
}

}  // namespace kf::test
