// SOAP against another program's numbers, and what it keeps.

#include <ATen/ATen.h>

#include "builtins/builtins.h"
#include "checkpoint/files/safetensors.h"
#include "core/error.h"
#include "optim/soap.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

SoapOptions options() {
  SoapOptions o;
  o.beta1 = 0.9;
  o.beta2 = 0.95;
  o.frequency = 3;
  return o;
}

constexpr double kLr = 0.02;

struct Given {
  Given() {
    const SafetensorsFile file(KF_SOURCE_DIR "/tests/unit/optim/files/soap.safetensors");
    start = file.tensor("start");
    gradients = file.tensor("gradients");
    weights = file.tensor("weights");
  }
  at::Tensor start, gradients, weights;  // (5, 4), (12, 5, 4), (12, 5, 4)
};

}  // namespace

TEST_CASE("soap: twelve updates with four refreshes of the bases are those of pytorch_optimizer", "[optim][soap]") {
  const Given given;
  const ParameterPtr weight = free_weight("w", given.start);
  Soap soap(decay_groups({weight}, 0.1), options());
  for (std::int64_t t = 0; t < given.gradients.size(0); ++t) {
    CAPTURE(t);
    weight->set_gradient(given.gradients[t].clone());
    soap.step(kLr);
    CHECK(relative_difference(weight->master.detach(), given.weights[t]) < 2e-5);  // fp32 factorisations
  }
}

TEST_CASE("soap: every matrix of a stack moves as on its own", "[optim][soap]") {
  const Given given;
  const ParameterPtr alone = free_weight("w", given.start), stack = free_weight("s", at::stack({given.start, given.start * 2}));
  Soap one(decay_groups({alone}, 0.1), options()), two(decay_groups({stack}, 0.1), options());
  for (std::int64_t t = 0; t < 8; ++t) {
    alone->set_gradient(given.gradients[t].clone());
    stack->set_gradient(at::stack({given.gradients[t], given.gradients[t + 1]}));
    one.step(kLr);
    two.step(kLr);
  }
  CHECK(relative_difference(stack->master.detach()[0], alone->master.detach()) < 1e-5);
}

TEST_CASE("soap: a long side keeps the identity, and a state goes on where it stopped", "[optim][soap]") {
  const Given given;
  SoapOptions o = options();
  o.max_dim = 4;
  const ParameterPtr whole = free_weight("w", given.start), half = free_weight("w", given.start);
  Soap straight(decay_groups({whole}, 0.1), o), before(decay_groups({half}, 0.1), o), after(decay_groups({half}, 0.1), o);
  const auto run = [&](Soap& soap, const ParameterPtr& weight, std::int64_t from, std::int64_t to) {
    for (std::int64_t t = from; t < to; ++t) {
      weight->set_gradient(given.gradients[t].clone());
      soap.step(kLr);
    }
  };
  run(straight, whole, 0, 10);
  CHECK(straight.state().tensors.at("left.w").numel() == 0);
  CHECK(straight.state().tensors.at("right.w").numel() == 16);
  run(before, half, 0, 5);
  OptimizerState saved = before.state();
  after.load(saved);
  run(after, half, 5, 10);
  CHECK(at::equal(whole->master, half->master));
  saved.integers.clear();
  CHECK_THROWS_WITH(after.load(saved), Catch::Contains("lacks 'soap_step.w'"));
}

TEST_CASE("soap: statistics of few tokens, with many eigenvalues of 0, have a basis too", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.name = "soap";
  const Registries registries = native_registries();
  const ParameterPtr table = free_weight("table", at::randn({199, 48}, at::detail::createCPUGenerator(1)));
  const auto optimizer = make_part(registries.optimizer, "soap", config, registries, decay_groups({table}, config.optimizer));
  const at::Tensor gradient = at::zeros({199, 48});
  for (std::int64_t row = 0; row < 199; row += 17) {
    gradient[row] = at::randn({48}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(row))) * 0.01;
  }
  for (int step = 0; step < 3; ++step) {
    table->set_gradient(gradient.clone());
    optimizer->step(1e-3);
  }
  CHECK(table->master.isfinite().all().item<bool>());
}

}  // namespace kf::test
