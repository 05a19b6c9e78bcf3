// Stacks of experts: what an optimizer takes over a weight, it takes over each expert.

#include <ATen/ATen.h>

#include "builtins/builtins.h"
#include "registry/registries.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {

TEST_CASE("optimizers: every expert of a stack moves as on its own", "[optim]") {
  const Registries registries = native_registries();
  config::Config config = tiny_config();
  config.optimizer.name = GENERATE("adamw", "adam_mini", "cautious_adamw", "mars", "muon", "scion", "soap");
  config.optimizer.update_rms_clip = config.optimizer.name == "adamw" ? 0.3 : 0;
  const bool vectors = GENERATE(false, true);
  CAPTURE(config.optimizer.name, vectors);
  const std::vector<std::int64_t> shape = vectors ? std::vector<std::int64_t>{6} : std::vector<std::int64_t>{5, 4};
  const auto made = [&](const std::string& name, const at::Tensor& start) {
    ParameterPtr weight = free_weight(vectors ? name + "_bias" : name, start);
    weight->role = vectors ? Role::vector : Role::hidden;
    return weight;
  };
  const auto optimizer_of = [&](const ParameterPtr& weight) {
    return make_part(registries.optimizer, config.optimizer.name, config, registries, decay_groups({weight}, config.optimizer));
  };
  std::vector<ParameterPtr> alone;
  std::vector<at::Tensor> starts;
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (const std::uint64_t expert : {0, 1}) {
    starts.push_back(drawn(shape, expert, at::kFloat));
    alone.push_back(made("w" + std::to_string(expert), starts.back()));
    optimizers.push_back(optimizer_of(alone.back()));
  }
  const ParameterPtr stack = made("w", at::stack(starts));
  stack->split = Split::experts;
  const std::unique_ptr<Optimizer> together = optimizer_of(stack);
  for (std::uint64_t step = 0; step < 5; ++step) {
    std::vector<at::Tensor> gradients;
    for (const std::uint64_t expert : {0, 1}) {
      gradients.push_back(drawn(shape, 10 + 2 * step + expert, at::kFloat) * (expert == 0 ? 1.0 : 20.0));
      alone[expert]->set_gradient(gradients.back().clone());
      optimizers[expert]->step(1e-2);
    }
    stack->set_gradient(at::stack(gradients));
    together->step(1e-2);
  }
  for (const std::size_t expert : {0, 1}) {
    CHECK(relative_difference(stack->master.detach()[static_cast<std::int64_t>(expert)], alone[expert]->master.detach()) < 1e-5);
  }
}

}  // namespace kf::test
