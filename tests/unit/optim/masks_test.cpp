// Which weights decay, which train, which muon takes.

#include <ATen/ATen.h>

#include "core/error.h"
#include "optim/clip.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

std::map<std::string, double> decay_of(const config::Config& config) {
  const auto model = tiny_model(config);
  std::map<std::string, double> out;
  for (const ParamGroup& group : decay_groups(model->parameters(), config.optimizer)) {
    for (const ParameterPtr& parameter : group.parameters) {
      out[parameter->name] = group.weight_decay;
    }
  }
  return out;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("decay: the default rule, then what is included, then what is excluded", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.weight_decay = 0.1;
  CHECK(decay_of(config)["token_embedding.embedding.weight"] == 0.1);
  config.optimizer.decay_default = "linear";
  CHECK(decay_of(config)["token_embedding.embedding.weight"] == 0.0);
  CHECK(decay_of(config)["output_head.proj.weight"] == 0.0);
  CHECK(decay_of(config)["layers.0.mlp.up_proj.weight"] == 0.1);
  config.optimizer.decay_include = {"*norm.weight"};
  config.optimizer.decay_exclude = {"re:layers\\.1\\..*_proj", "layers.0.mlp_norm*"};
  auto decays = decay_of(config);
  CHECK(decays["layers.0.attention_norm.weight"] == 0.1);
  CHECK(decays["layers.0.mlp_norm.weight"] == 0.0);
  CHECK(decays["layers.1.mlp.up_proj.weight"] == 0.0);
  CHECK(decays["layers.0.mlp.up_proj.weight"] == 0.1);
  config.optimizer.decay_default = "none";
  config.optimizer.decay_include = {"*"};
  config.optimizer.decay_exclude = {};
  for (const auto& [name, decay] : decay_of(config)) {
    CAPTURE(name);
    CHECK(decay == 0.1);
  }
}

TEST_CASE("decay: a pattern without a match is an error that lists near names", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.decay_exclude = {"layers.*.atention.q_proj.weight"};
  const std::string message = message_of([&] { decay_of(config); });
  CHECK(message.find("optimizer.decay_exclude: no weight is called 'layers.*.atention.q_proj.weight'; near: ") == 0);
  CHECK(message.find("layers.0.attention.q_proj.weight") != std::string::npos);
}

TEST_CASE("frozen weights get no gradient, no state, no part in the norm, and do not move", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.weight_decay = 0.5;
  config.train.trainable = {"layers.*"};
  config.train.frozen = {"layers.0.*"};
  Bench bench(config);
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  const std::vector<at::Tensor> before = bench.masters();
  double norm = 0;
  const StepResult result = bench.step(data, 0, 1e-2, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      if (parameter->gradient().defined()) {
        norm += parameter->gradient().to(at::kDouble).square().sum().item<double>();
      }
    }
  });
  CHECK(result.grad_norm == Approx(std::sqrt(norm)).epsilon(1e-5));
  const OptimizerState state = bench.optimizer->state();
  std::size_t index = 0;
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    CAPTURE(parameter->name);
    const bool trains = parameter->name.starts_with("layers.1.");
    CHECK(parameter->trainable == trains);
    CHECK(at::equal(before[index++], parameter->master.detach()) == !trains);
    CHECK((state.tensors.count("exp_avg." + parameter->name) > 0) == trains);
  }
}

TEST_CASE("frozen: tied names mean one weight, and something must be left to train", "[optim]") {
  config::Config config = tiny_config();
  config.model.tie_embeddings = true;
  config.train.frozen = {"output_head.*"};
  CHECK_FALSE(tiny_model(config)->parameters().front()->trainable);
  config.train.frozen = {"*"};
  CHECK(message_of([&] { tiny_model(config); }).find("leave no weight to train") != std::string::npos);
}

TEST_CASE("muon: excluded matrices go to AdamW", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.name = "muon";
  config.optimizer.muon_exclude = {"*.k_proj.weight"};
  Bench bench(config);
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  bench.step(data, 0, 1e-2);
  const OptimizerState state = bench.optimizer->state();
  CHECK(state.tensors.count("momentum.layers.0.attention.q_proj.weight") == 1);
  CHECK(state.tensors.count("momentum.layers.0.attention.k_proj.weight") == 0);
  CHECK(state.tensors.count("exp_avg.layers.0.attention.k_proj.weight") == 1);
  CHECK(state.tensors.count("exp_avg.token_embedding.embedding.weight") == 1);
  config.optimizer.muon_exclude = {"token_embedding.*"};
  CHECK(message_of([&] { Bench refused(config); }).find("optimizer.muon_exclude: no weight is called") == 0);
}

}  // namespace kf::test
