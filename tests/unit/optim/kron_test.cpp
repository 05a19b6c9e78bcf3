// Kron against another program's numbers, and what its factors become.

#include <ATen/ATen.h>

#include "checkpoint/files/safetensors.h"
#include "optim/kron.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kLr = 0.02;

SafetensorsFile given() { return SafetensorsFile(KF_SOURCE_DIR "/tests/unit/optim/files/kron.safetensors"); }

}  // namespace

TEST_CASE("kron: twelve updates of a matrix and a vector are those of pytorch_optimizer", "[optim][kron]") {
  const std::string name = GENERATE("matrix", "vector");
  const SafetensorsFile file = given();
  const at::Tensor gradients = file.tensor(name + ".gradients"), probes = file.tensor(name + ".probes"),
                   weights = file.tensor(name + ".weights");
  const ParameterPtr weight = free_weight("w", file.tensor(name + ".start"));
  KronOptions options;
  options.probe = [&](const Parameter&, std::int64_t step) { return probes[step]; };
  Kron kron(decay_groups({weight}, 0.1), options);
  for (std::int64_t t = 0; t < gradients.size(0); ++t) {
    CAPTURE(name, t);
    weight->set_gradient(gradients[t].clone());
    kron.step(kLr);
    CHECK(relative_difference(weight->master.detach(), weights[t]) < 2e-5);  // fp32 solves
  }
}

TEST_CASE("kron: its factors whiten gradients of very different sizes", "[optim][kron]") {
  const ParameterPtr weight = free_weight("w", at::zeros({6, 3}));
  KronOptions options;
  options.momentum = 0;
  Kron kron(decay_groups({weight}, 0.0), options);
  const at::Tensor scale = at::tensor({0.1, 0.3, 1.0, 1.0, 3.0, 10.0}).to(at::kFloat).unsqueeze(1);
  at::Tensor before, moved;
  for (std::int64_t t = 0; t < 400; ++t) {
    weight->set_gradient(drawn({6, 3}, static_cast<std::uint64_t>(t), at::kFloat) * scale);
    before = weight->master.detach().clone();
    kron.step(1.0);
    moved = t < 300 ? at::zeros({6}) : moved + (weight->master.detach() - before).square().mean(1);
  }
  const at::Tensor rms = (moved / 100).sqrt();        // of each row's steps
  CHECK((rms.max() / rms.min()).item<double>() < 5);  // gradients: 100
}

TEST_CASE("kron: long sides have diagonals, stacks a factor each, and a state goes on where it stopped", "[optim][kron]") {
  KronOptions options;
  options.max_dim = 4;
  const ParameterPtr whole = free_weight("w", drawn({2, 5, 4}, 1, at::kFloat)), half = free_weight("w", drawn({2, 5, 4}, 1, at::kFloat));
  Kron straight(decay_groups({whole}, 0.1), options), before(decay_groups({half}, 0.1), options), after(decay_groups({half}, 0.1), options);
  const auto run = [&](Kron& kron, const ParameterPtr& weight, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t t = from; t < to; ++t) {
      weight->set_gradient(drawn({2, 5, 4}, 10 + t, at::kFloat));
      kron.step(kLr);
    }
  };
  run(straight, whole, 0, 10);
  CHECK(straight.state().tensors.at("left.w").sizes().vec() == std::vector<std::int64_t>{2, 5});
  CHECK(straight.state().tensors.at("right.w").sizes().vec() == std::vector<std::int64_t>{2, 4, 4});
  run(before, half, 0, 5);
  OptimizerState saved = before.state();
  after.load(saved);
  run(after, half, 5, 10);
  CHECK(at::equal(whole->master, half->master));
  saved.integers.clear();
  CHECK_THROWS_WITH(after.load(saved), Catch::Contains("lacks 'kron_step'"));
}

}  // namespace kf::test
