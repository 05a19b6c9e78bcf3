#include "model/transformer/adapters.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>

#include "core/error.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

constexpr double kAlpha = 6;
constexpr std::int64_t kRank = 4;

config::Config lora_config() {
  config::Config c = test::tiny_config();
  c.adapter.name = "lora";
  c.adapter.rank = kRank;
  c.adapter.alpha = kAlpha;
  return c;
}

ParameterPtr weight(Model& model, const std::string& name) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name == name) {
      return parameter;
    }
  }
  FAIL("no weight " << name);
  return nullptr;
}

/// Where the adapters are no longer 0.
void move_adapters(Model& model) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name.ends_with(".lora.b")) {
      parameter->master.normal_(0, 0.1, at::detail::createCPUGenerator(parameter->name.size()));
      parameter->publish();
    }
  }
}

/// The same model without adapters, these merged into it.
std::shared_ptr<Model> merged(Model& model) {
  std::shared_ptr<Model> plain = test::tiny_model(test::tiny_config());
  std::map<std::string, at::Tensor> values;
  for (const auto& [name, tensor] : merged_weights(model)) {
    values[name] = tensor;
  }
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : plain->parameters()) {
    parameter->master.copy_(values.at(parameter->name));
    parameter->publish();
  }
  CHECK(values.size() == plain->parameters().size());
  return plain;
}

/// One backward of a fixed function of the logits.
void backward(Model& model, const at::Tensor& tokens, std::int64_t step = 0) {
  ForwardContext context;
  context.step = step;
  model.begin_micro(context);
  const at::Tensor logits = model.forward(tokens, context);
  torch::autograd::backward({(logits * logits).mean()}, {});
}

const std::vector<std::string> kTargets{"q_proj", "k_proj", "v_proj", "o_proj"};

}  // namespace

TEST_CASE("lora: a fresh adapter changes nothing, A is within 1 / sqrt(in) and B is 0", "[adapter]") {
  const auto model = test::tiny_model(lora_config());
  const auto plain = test::tiny_model(test::tiny_config());
  const at::Tensor tokens = test::random_tokens(2, 16, 3);
  CHECK(at::equal(test::logits_of(*model, tokens), test::logits_of(*plain, tokens)));
  const at::Tensor a = weight(*model, "layers.1.attention.o_proj.lora.a")->master;
  CHECK(a.sizes() == at::IntArrayRef({kRank, 32}));
  const double bound = 1 / std::sqrt(32.0);
  CHECK(a.abs().max().item<double>() <= bound);
  CHECK(a.abs().max().item<double>() > 0.8 * bound);  // of 128 draws: all below 0.8 once in 1e12
  CHECK(weight(*model, "layers.1.attention.o_proj.lora.b")->master.eq(0).all().item<bool>());
}

TEST_CASE("lora: gradients are the projections of a dense run's, and the base gets none", "[adapter]") {
  const auto model = test::tiny_model(lora_config());
  move_adapters(*model);
  const auto dense = merged(*model);
  const at::Tensor tokens = test::random_tokens(2, 16, 3);
  backward(*model, tokens);
  backward(*dense, tokens);
  for (const std::string& target : kTargets) {
    for (const char* layer : {"layers.0.attention.", "layers.1.attention."}) {
      const std::string name = layer + target;
      CAPTURE(name);
      const ParameterPtr a = weight(*model, name + ".lora.a"), b = weight(*model, name + ".lora.b");
      const at::Tensor whole = weight(*dense, name + ".weight")->gradient();
      const double scale = kAlpha / kRank;
      // fp32 rounds by 2^-24; a few hundred sums follow one another in either way.
      CHECK(test::relative_difference(a->gradient(), at::mm(b->master.t(), whole) * scale) < 400 * std::ldexp(1, -24));
      CHECK(test::relative_difference(b->gradient(), at::mm(whole, a->master.t()) * scale) < 400 * std::ldexp(1, -24));
    }
  }
  for (const ParameterPtr& parameter : model->parameters()) {
    CAPTURE(parameter->name);
    CHECK(parameter->gradient().defined() == parameter->added);
    CHECK(parameter->added == (parameter->name.find(".lora.") != std::string::npos));
  }
}

TEST_CASE("lora: the merged model has the logits of the one with adapters", "[adapter]") {
  config::Config config = lora_config();
  config.adapter.targets = {"*.attention.*_proj", "gate_proj", "layers.1.mlp.down_proj"};
  const auto model = test::tiny_model(config);
  move_adapters(*model);
  const auto plain = merged(*model);
  const at::Tensor tokens = test::random_tokens(2, 16, 3);
  const at::Tensor base = test::logits_of(*test::tiny_model(test::tiny_config()), tokens);
  const at::Tensor with = test::logits_of(*model, tokens);
  CHECK(test::relative_difference(base, with) > 1e-3);
  CHECK(test::relative_difference(test::logits_of(*plain, tokens), with) < 1e-5);
}

TEST_CASE("lora: the optimizer moves adapters and what train.trainable adds, nothing else", "[adapter]") {
  config::Config config = lora_config();
  config.train.trainable = {"norm.weight"};
  test::Bench bench(config);
  const at::Tensor tokens = test::random_tokens(4, 32, 5);
  test::FixedLoader data(tokens, tokens, 2);
  std::map<std::string, at::Tensor> before;
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    before[parameter->name] = parameter->master.detach().clone();
  }
  bench.step(data, 0, 1e-2);
  bench.step(data, 1, 1e-2);
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    CAPTURE(parameter->name);
    CHECK(at::equal(before[parameter->name], parameter->master) == !(parameter->added || parameter->name == "norm.weight"));
  }
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    CAPTURE(name);
    CHECK((name.find(".lora.") != std::string::npos || name.ends_with(".norm.weight")));
  }
}

TEST_CASE("lora: dropout depends on the step, is off in evaluation, and recomputation drops the same", "[adapter]") {
  config::Config config = lora_config();
  config.adapter.dropout = 0.5;
  const at::Tensor tokens = test::random_tokens(2, 16, 3);
  const auto gradient = [&](const std::string& recompute, std::int64_t step) {
    config.train.activation_checkpointing = recompute;
    const auto model = test::tiny_model(config);
    move_adapters(*model);
    backward(*model, tokens, step);
    return weight(*model, "layers.0.attention.q_proj.lora.a")->gradient().clone();
  };
  const at::Tensor plain = gradient("none", 1);
  CHECK(at::equal(plain, gradient("none", 1)));
  CHECK_FALSE(at::equal(plain, gradient("none", 2)));
  CHECK(at::equal(plain, gradient("full", 1)));

  const auto with = test::tiny_model(config);
  move_adapters(*with);
  config.adapter.dropout = 0;
  const auto without = test::tiny_model(config);
  move_adapters(*without);
  CHECK_FALSE(at::equal(test::logits_of(*with, tokens), test::logits_of(*without, tokens)));
  with->train(false);
  without->train(false);
  CHECK(at::equal(test::logits_of(*with, tokens), test::logits_of(*without, tokens)));
}

TEST_CASE("adapter: targets that name no layer, or a matrix that others read, are refused by name", "[adapter]") {
  const auto refusal = [](std::vector<std::string> targets, std::int64_t experts = 0) -> std::string {
    config::Config config = lora_config();
    config.adapter.targets = std::move(targets);
    config.model.num_experts = experts;
    try {
      test::tiny_model(config);
    } catch (const Error& error) {
      CHECK(error.code() == Code::config);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refusal({"q_porj"}), Contains("adapter.targets") && Contains("q_porj") && Contains("q_proj"));
  CHECK_THAT(refusal({"q_proj", "output_head.proj"}), Contains("output_head.proj, whose weight is read by others"));
  CHECK_THAT(refusal({"token_embedding.embedding"}), Contains("token_embedding.embedding, whose"));
  CHECK_THAT(refusal({"layers.1.mlp.*"}, 4), Contains("layers.1.mlp.") && Contains("takes no adapter"));
  CHECK(refusal({"layers.0.attention.q_proj"}).empty());
}
