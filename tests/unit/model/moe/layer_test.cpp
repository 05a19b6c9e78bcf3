// The layer: grouped against the plain loop, capacity, shared experts, tokens that are not there.

#include "model/moe/moe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <map>

#include "config/plan/derived.h"
#include "model/moe/capacity.h"
#include "model/moe/moe_book.h"
#include "moe_model.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

struct Outcome {
  at::Tensor logits;
  std::vector<at::Tensor> gradients;
};

Outcome forward_backward(const config::Config& config, at::ScalarType compute = at::kFloat) {
  const auto model = tiny_model(config, 1, compute);
  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  const at::Tensor logits = model->forward(random_tokens(2, 32, 3), context);
  at::Tensor loss = at::logsumexp(logits.to(at::kFloat), {-1}).square().mean();
  for (const at::Tensor& term : {model->aux_losses(results).balance, model->aux_losses(results).router_z}) {
    loss = term.defined() ? loss + term : loss;
  }
  loss.backward();
  Outcome out;
  out.logits = logits.detach().to(at::kFloat);
  for (const ParameterPtr& parameter : model->parameters()) {
    parameter->accumulate();
    const at::Tensor gradient = parameter->gradient();
    out.gradients.push_back(gradient.defined() ? gradient : at::zeros(parameter->shape));
  }
  return out;
}

struct Variant {
  const char* name;
  std::function<void(config::ModelConfig&)> set;
};

std::vector<Variant> variants() {
  return {
      {"softmax_topk", [](config::ModelConfig&) {}},
      {"sigmoid_topk", [](config::ModelConfig& m) { m.moe_router = "sigmoid_topk"; }},
      {"groups",
       [](config::ModelConfig& m) {
         m.moe_router = "sqrtsoftplus";
         m.moe_groups = 2;
         m.moe_topk_groups = 1;
         m.moe_routed_scale = 2.5;
       }},
      {"capacity", [](config::ModelConfig& m) { m.moe_capacity_factor = 0.6; }},
      {"gradient scale", [](config::ModelConfig& m) { m.moe_gradient_scale = true; }},
      {"gelu", [](config::ModelConfig& m) { m.activation = "gelu"; }},
      {"shared with a gate",
       [](config::ModelConfig& m) {
         m.moe_shared_experts = 2;
         m.moe_shared_gate = true;
       }},
      {"weight on the input",
       [](config::ModelConfig& m) {
         m.moe_router = "sigmoid";
         m.moe_top_k = 1;
         m.moe_weight_on_input = true;
         m.moe_capacity_factor = 0.6;
       }},
      {"router bias in fp32",
       [](config::ModelConfig& m) {
         m.moe_router_bias = true;
         m.moe_router_fp32 = true;
       }},
      {"latent experts",
       [](config::ModelConfig& m) {
         m.moe_input_dim = 12;
         m.moe_shared_experts = 1;
       }},
      {"one branch of its own width", [](config::ModelConfig& m) { m.attn_out_dim = 12; }},
      {"normed router", [](config::ModelConfig& m) { m.moe_router = "softmax_normed"; }},
      {"beside a dense layer",
       [](config::ModelConfig& m) {
         m.moe_beside_dense = true;
         m.norm_placement = "sandwich";
       }},
      {"by a pattern",
       [](config::ModelConfig& m) {
         m.n_layers = 4;
         m.moe_pattern = {"experts", "dense", "dense"};
       }},
      {"biases", [](config::ModelConfig& m) { m.mlp_bias = true; }},
  };
}

}  // namespace

TEST_CASE("moe: grouped and loop give the same values and gradients", "[moe]") {
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name, compute);
    config::Config config = moe_config();
    variant.set(config.model);
    const Outcome grouped = forward_backward(config, compute);
    config.model.moe_impl = "loop";
    const Outcome loop = forward_backward(config, compute);
    // bf16 rounds each expert's sum in another order: single steps of its 8 bits.
    CHECK(relative_difference(grouped.logits, loop.logits) < (compute == at::kFloat ? 1e-5 : 3e-2));
    REQUIRE(grouped.gradients.size() == loop.gradients.size());
    for (std::size_t i = 0; i < loop.gradients.size(); ++i) {
      CAPTURE(i);
      const double scale = loop.gradients[i].abs().max().item<double>();
      const double error =
          (grouped.gradients[i] - loop.gradients[i]).norm().item<double>() / (loop.gradients[i].norm().item<double>() + 1e-12);
      CHECK((scale == 0 || error < (compute == at::kFloat ? 1e-4 : 6e-2)));
    }
  }
}

TEST_CASE("moe: the experts' settings count as many weights as the built model has", "[moe]") {
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    if (std::string(variant.name) == "biases") {
      continue;  // of dense layers, too: tested with them
    }
    config::Config config = moe_config();
    variant.set(config.model);
    CHECK(config::parameter_count(config.model) == count_parameters(tiny_model(config)->parameters()));
  }
}

TEST_CASE("moe: the first layers stay dense, then every moe_frequency-th has experts", "[moe]") {
  config::Config config = moe_config();
  config.model.n_layers = 6;
  config.model.moe_first_dense = 2;
  config.model.moe_frequency = 2;
  std::vector<std::int64_t> layers;
  const auto model = tiny_model(config);
  const MoeBook book(*model);
  for (const auto& layer : book.layers()) {
    layers.push_back(layer->options().layer);
  }
  CHECK(layers == std::vector<std::int64_t>{3, 5});
}

TEST_CASE("moe: a pattern says which layers have experts", "[moe]") {
  config::Config config = moe_config();
  config.model.n_layers = 5;
  config.model.moe_pattern = {"experts", "dense", "dense", "experts"};
  std::vector<std::int64_t> layers;
  const auto model = tiny_model(config);
  const MoeBook book(*model);
  for (const auto& layer : book.layers()) {
    layers.push_back(layer->options().layer);
  }
  CHECK(layers == std::vector<std::int64_t>{0, 3, 4});
}

TEST_CASE("moe: routed experts of another width stand between two projections, shared ones do not", "[moe]") {
  config::Config config = moe_config();
  config.model.n_layers = 1;
  config.model.moe_input_dim = 12;
  config.model.moe_shared_experts = 1;
  config.model.moe_impl = "loop";
  const auto model = tiny_model(config);
  model->train(false);
  std::map<std::string, at::Tensor> w;
  for (const ParameterPtr& parameter : model->parameters()) {
    w[parameter->name] = parameter->master.detach().to(at::kDouble);
  }
  const at::NoGradGuard no_grad;
  const MoeBook book(*model);
  const MoeLayer& layer = *book.layers().front();
  const at::Tensor x = at::arange(5 * config.model.dim, at::kFloat).sin().view({5, config.model.dim});
  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  const at::Tensor actual = layer.forward(x, context).to(at::kDouble), in = x.to(at::kDouble);
  REQUIRE(results.experts.size() == 1);
  const ExpertsRecord& record = results.experts.front();
  const std::string at = "layers.0.mlp.";
  const auto swiglu = [](const at::Tensor& y, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& down) {
    return at::linear(at::silu(at::linear(y, gate)) * at::linear(y, up), down);
  };
  const at::Tensor narrow = at::linear(in, w.at(at + "latent_down.weight"));  // (5, 12)
  at::Tensor routed = at::zeros({5, 12}, at::kDouble);
  for (std::int64_t token = 0; token < 5; ++token) {
    for (std::int64_t slot = 0; slot < config.model.moe_top_k; ++slot) {
      const auto expert = record.experts[token][slot].item<std::int64_t>();
      const at::Tensor y = swiglu(narrow[token], w.at(at + "gate_w")[expert], w.at(at + "up_w")[expert], w.at(at + "down_w")[expert]);
      routed[token] += y * record.weights[token][slot].item<double>();
    }
  }
  const std::string shared = at + "shared_expert.";
  const at::Tensor expected =
      at::linear(routed, w.at(at + "latent_up.weight")) +
      swiglu(in, w.at(shared + "gate_proj.weight"), w.at(shared + "up_proj.weight"), w.at(shared + "down_proj.weight"));
  CHECK((actual - expected).abs().max().item<double>() < 1e-5 * (1 + expected.abs().max().item<double>()));
}

TEST_CASE("moe: capacity is counted over all slots, slot by slot in the order of the tokens", "[moe]") {
  // E = 2, N = 3, k = 2: every token visits both; capacity ceil(6 / 2 * 0.6) = 2.
  const at::Tensor experts = at::tensor({0, 1, 0, 1, 1, 0}, at::kLong).view({3, 2});
  const at::Tensor weights = at::arange(1, 7, at::kFloat).view({3, 2});
  const at::Tensor kept = weights * within_capacity(experts, 2, 0.6);
  // expert 0: tokens 0 and 1 in slot 0 fill it. expert 1: token 2 in slot 0, then token 0 in slot 1.
  CHECK(kept.equal(at::tensor({1, 2, 3, 0, 5, 0}, at::kFloat).view({3, 2})));
  CHECK(within_capacity(experts, 2, 1e-9).sum().item<std::int64_t>() == 2);  // at least one an expert
}

TEST_CASE("moe: a micro-batch without tokens is no error", "[moe]") {
  config::Config config = moe_config();
  config.model.moe_capacity_factor = GENERATE(0.0, 1.0);
  config.model.moe_gradient_scale = true;
  config.model.moe_router = GENERATE("softmax_topk", "sigmoid_topk");
  config.model.moe_impl = GENERATE("grouped", "loop");
  const auto model = tiny_model(config);
  const MoeBook book(*model);
  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  for (const auto& layer : book.layers()) {
    layer->forward(at::empty({0, 8, 32}), context).sum().backward();
  }
  model->end_micro(results);
  model->end_step(true, 0);
  for (const ParameterPtr& parameter : model->parameters()) {
    CHECK((!parameter->gradient().defined() || parameter->gradient().eq(0).all().item<bool>()));
    CHECK(parameter->master.isfinite().all().item<bool>());
  }
  for (const auto& [name, value] : model->metrics()) {
    CAPTURE(name);
    CHECK(std::isfinite(value));
  }
}

TEST_CASE("moe: one expert that everybody visits equals the dense layer", "[moe]") {
  config::Config config = moe_config();
  config.model.num_experts = 1;
  config.model.moe_top_k = 1;
  config.model.moe_ffn_dim = config.model.ffn_hidden_dim;
  const auto sparse = tiny_model(config);
  config.model.num_experts = 0;
  const auto dense = tiny_model(config, 2);
  std::map<std::string, at::Tensor> weights;
  for (const ParameterPtr& parameter : sparse->parameters()) {
    for (const StoredView& view : parameter->stored()) {
      std::string name = view.name;
      if (const auto at = name.find("experts.0."); at != std::string::npos) {
        name.erase(at, 10);
      }
      weights[name] = view.of(parameter->master.detach());
    }
  }
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : dense->parameters()) {
    parameter->master.copy_(weights.at(parameter->name));
  }
  const at::Tensor tokens = random_tokens(2, 16, 5);
  CHECK(relative_difference(logits_of(*sparse, tokens), logits_of(*dense, tokens)) < 1e-5);
}
