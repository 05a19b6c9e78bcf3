// H16, H18: what decays, and how weights start.

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "support/tiny.h"

namespace kf::cases {
using namespace kf::test;

TEST_CASE("optimizer: with zero gradients AdamW shrinks matrices and leaves norms and biases alone bit for bit", "[cases][H16]") {
  const std::string norm = GENERATE("rmsnorm", "layernorm");
  const bool fused = GENERATE(true, false);
  CAPTURE(norm, fused);
  config::Config config = tiny_config();
  config.model.norm_type = norm;
  config.model.qk_norm = true;
  config.optimizer.weight_decay = 0.5;
  config.optimizer.fused = fused;
  Bench bench(config);
  const ParameterList parameters = bench.model->parameters();
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->shape.size() < 2) {
      parameter->master.data().add_(0.125);  // not the 0 that decay would leave anyway
    }
    parameter->set_gradient(at::zeros(parameter->shape));
  }
  const std::vector<at::Tensor> before = bench.masters();
  bench.optimizer->step(0.1);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CAPTURE(parameters[i]->name);
    const at::Tensor now = parameters[i]->master.detach();
    if (parameters[i]->shape.size() > 1) {  // embedding and head too: the documented rule
      CHECK(relative_difference(now, before[i] * 0.95) < 1e-6);
    } else {
      CHECK(at::equal(now, before[i]));
    }
  }
}

TEST_CASE("optimizer: every trainable weight is in exactly one group, by its dimensions and its name", "[cases][H16]") {
  config::Config config = tiny_config();
  config.model.norm_type = "layernorm";
  config.model.qk_norm = true;
  config.model.tie_embeddings = GENERATE(true, false);
  Bench bench(config);
  ParameterList parameters = bench.model->parameters();
  parameters.push_back(free_weight("extra.bias", at::ones({3, 3})));
  parameters.push_back(free_weight("extra.scale", at::ones({3})));
  parameters.push_back(free_weight("extra.frozen", at::ones({3, 3})));
  parameters.back()->trainable = false;
  const std::vector<ParamGroup> groups = decay_groups(parameters, 0.1);
  std::map<std::string, double> decay_of;
  for (const ParamGroup& group : groups) {
    for (const ParameterPtr& parameter : group.parameters) {
      CHECK(decay_of.emplace(parameter->name, group.weight_decay).second);
    }
  }
  CHECK(decay_of.size() == parameters.size() - 1);
  CHECK(decay_of.count("extra.frozen") == 0);
  CHECK(decay_of["extra.bias"] == 0.0);
  CHECK(decay_of["extra.scale"] == 0.0);
  CHECK(decay_of["token_embedding.embedding.weight"] == 0.1);
  CHECK(decay_of["layers.0.attention.q_norm.weight"] == 0.0);
  CHECK(decay_of["layers.1.mlp_norm.bias"] == 0.0);
  CHECK(decay_of["layers.1.mlp.down_proj.weight"] == 0.1);
}

TEST_CASE("model: output projections start at init_std / sqrt(2 L)", "[cases][H18]") {
  const double init_std = GENERATE(0.02, 0.05);
  config::Config config = tiny_config();
  config.model.dim = 256;
  config.model.n_layers = 8;
  config.model.init_std = init_std;
  Bench bench(config);
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    if (parameter->shape.size() < 2) {
      continue;
    }
    CAPTURE(parameter->name);
    const bool output = parameter->name.ends_with("o_proj.weight") || parameter->name.ends_with("down_proj.weight");
    const double expected = output ? init_std / std::sqrt(2.0 * 8) : init_std;
    CHECK(parameter->master.std().item<double>() == Approx(expected).epsilon(0.02));
  }
}

}  // namespace kf::cases
