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

TEST_CASE("int8 moments: 300 steps end where those with fp32 moments do", "[optim][int8]") {
  const auto [first, reference] = trained("fp32", 1);
  const double bytes = trained("int8", 1).second, another = trained("fp32", 2).second;
  std::cout << "300 steps, mean loss of the last 50: from " << first << " to " << reference << " (fp32), " << bytes << " (int8), "
            << another << " (fp32 from another seed)\n";
  CHECK(reference < 0.5 * first);
  // The margin: 2 % of what the loss falls by.
  CHECK(std::fabs(bytes - reference) < 0.02 * (first - reference));
}

TEST_CASE("int8 moments: small weights and embeddings stay fp32, the rest takes a byte a number", "[optim][int8]") {
  const config::Config config = config_of("int8");
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
    CHECK(state_type_of(p, at::kChar) == (wide ? at::kFloat : at::kChar));
  }
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {  // as files hold it
    CHECK(tensor.scalar_type() == at::kFloat);
  }
}

TEST_CASE("int8 moments: a state of another type is taken over, and theirs by another type", "[optim][int8]") {
  const std::string from = GENERATE("fp32", "int8"), to = from == "fp32" ? "int8" : "fp32";
  Bench before(config_of(from)), after(config_of(to));
  FixedLoader data = counting();
  for (std::int64_t step = 0; step < 3; ++step) {
    before.step(data, step, 1e-3);
  }
  after.optimizer->load(before.optimizer->state());
  const OptimizerState a = before.optimizer->state(), b = after.optimizer->state();
  for (const auto& [name, tensor] : a.tensors) {
    CAPTURE(name);
    // A step of the map is 0.0141 between 0.1 and 1, and half of it is the most that a number is off.
    const double most = to == "int8" ? 0.0071 * tensor.abs().max().item<double>() : 0;
    CHECK((b.tensors.at(name) - tensor).abs().max().item<double>() <= most);
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
