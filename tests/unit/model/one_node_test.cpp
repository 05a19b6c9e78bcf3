// Layers that compute as one node of the graph, against their formulas, which are what runs while somebody looks at a module.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <optional>

#include "kernels/product/stacked.h"
#include "model/observe.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

std::vector<at::Tensor> gradients_of(Model& model, const at::Tensor& tokens, const at::Tensor& docs) {
  ForwardContext context;
  context.doc_ids = docs;
  const at::Tensor logits = model.forward(tokens, context);
  logits.to(at::kFloat).logsumexp(-1).mean().backward();
  std::vector<at::Tensor> out{logits.detach().to(at::kFloat)};
  for (const ParameterPtr& parameter : model.parameters()) {
    out.push_back(parameter->value.grad().defined() ? parameter->value.grad().to(at::kFloat) : at::Tensor());
    parameter->clear_gradient();
  }
  return out;
}

std::shared_ptr<Module> child_at(const std::shared_ptr<Module>& module, std::string_view path) {
  const std::size_t dot = path.find('.');
  for (const auto& [name, child] : module->children()) {
    if (name == path.substr(0, dot)) {
      return dot == std::string_view::npos ? child : child_at(child, path.substr(dot + 1));
    }
  }
  return nullptr;
}

ParameterPtr weight_of(Model& model, const std::string& name) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name == name) {
      return parameter;
    }
  }
  return nullptr;
}

/// The gradients of all weights of the squares of the gradients of all weights.
std::vector<at::Tensor> second_gradients_of(Model& model, const at::Tensor& tokens) {
  ForwardContext context;
  const at::Tensor loss = model.forward(tokens, context).logsumexp(-1).mean();
  std::vector<at::Tensor> weights;
  for (const ParameterPtr& parameter : model.parameters()) {
    weights.push_back(parameter->value);
  }
  at::Tensor penalty = at::zeros({});
  for (const at::Tensor& each : torch::autograd::grad({loss}, weights, {}, /*retain_graph=*/true, /*create_graph=*/true)) {
    penalty = penalty + each.square().sum();
  }
  return torch::autograd::grad({penalty}, weights);
}

/// Norms of heads begin at factors of 1, which hide whether they count.
void draw_head_norms(Model& model) {
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->name.find("q_norm") != std::string::npos || parameter->name.find("k_norm") != std::string::npos) {
      parameter->value.detach().uniform_(-0.8, 1.5);
    }
  }
}

struct Variant {
  const char* name;
  std::function<void(config::ModelConfig&)> change;
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"plain", [](auto&) {}},
      {"one kv head", [](auto& m) { m.n_kv_heads = 1; }},
      {"odd widths", [](auto& m) { m.head_dim = 10, m.ffn_hidden_dim = 37; }},
      {"part of a head turns", [](auto& m) { m.rope_fraction = 0.5; }},
      {"pairs of neighbours turn", [](auto& m) { m.rope_layout = "interleaved"; }},
      {"nothing turns", [](auto& m) { m.pos_embedding = "learned"; }},
      {"windows", [](auto& m) { m.layer_pattern = {"local"}, m.window = 5; }},
      {"soft cap", [](auto& m) { m.attn_softcap = 0.3; }},
      {"norms of heads", [](auto& m) { m.qk_norm = true; }},
      {"norms of heads, one kv head, pairs of neighbours",
       [](auto& m) { m.qk_norm = true, m.n_kv_heads = 1, m.rope_layout = "interleaved", m.rope_fraction = 0.5; }},
      {"norms of heads by 1 + weight", [](auto& m) { m.qk_norm = true, m.norm_unit_offset = true; }},
      {"norms of heads without weights", [](auto& m) { m.qk_norm = true, m.norm_weight = false; }},
      {"norms of heads that do not turn", [](auto& m) { m.qk_norm = true, m.pos_embedding = "learned"; }},
      {"tied", [](auto& m) { m.tie_embeddings = true; }},
  };
  return all;
}

}  // namespace

TEST_CASE("one node: results and gradients are those of the formula", "[one_node]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t length = GENERATE(1, 29);
  const bool packed = GENERATE(false, true);
  // Ten products in a row of at most 96 terms; of bf16, results of twenty steps are rounded on the way.
  const double bound = type == at::kFloat ? 10 * 96 * 0x1p-24 : 20 * 0x1p-8;
  const at::Tensor tokens = random_tokens(2, length, 3);
  const at::Tensor docs = packed ? at::arange(length, at::kLong).floor_divide(7).repeat({2, 1}) : at::Tensor();
  for (const Variant& variant : variants()) {
    INFO(variant.name << ", " << toString(type) << ", length " << length << (packed ? ", packed" : ""));
    config::Config config = tiny_config();
    variant.change(config.model);
    const auto model = tiny_model(config, 1, type);
    draw_head_norms(*model);
    const std::vector<at::Tensor> by_node = gradients_of(*model, tokens, docs);
    const Observation look(child_at(model, "norm"), [](const at::Tensor&, const at::Tensor&) { return at::Tensor(); });
    const std::vector<at::Tensor> by_formula = gradients_of(*model, tokens, docs);
    REQUIRE(by_node.size() == by_formula.size());
    for (std::size_t i = 0; i < by_node.size(); ++i) {
      REQUIRE(by_node[i].defined() == by_formula[i].defined());
      if (by_node[i].defined() && by_formula[i].abs().max().item<double>() > 1e-6) {  // of one position, q and k have none
        INFO("number " << i);
        CHECK(relative_difference(by_node[i], by_formula[i]) < bound);
      }
    }
  }
}

TEST_CASE("one node: gradients of gradients are those of the formula", "[one_node]") {
  constexpr double kBound = 4 * 10 * 96 * 0x1p-24;  // four passes over the ten products
  const at::Tensor tokens = random_tokens(2, 29, 3);
  for (const Variant& variant : variants()) {
    config::Config config = tiny_config();
    variant.change(config.model);
    const auto model = tiny_model(config);
    draw_head_norms(*model);
    const std::vector<at::Tensor> by_node = second_gradients_of(*model, tokens);
    const Observation look(child_at(model, "norm"), [](const at::Tensor&, const at::Tensor&) { return at::Tensor(); });
    const std::vector<at::Tensor> by_formula = second_gradients_of(*model, tokens);
    for (std::size_t i = 0; i < by_node.size(); ++i) {
      INFO(variant.name << ", weight " << i);
      CHECK(relative_difference(by_node[i], by_formula[i]) < kBound);
    }
  }
}

TEST_CASE("one node: of norms of heads, those that do not train get no gradient", "[one_node]") {
  config::Config config = tiny_config();
  config.model.qk_norm = true;
  const auto model = tiny_model(config);
  const at::Tensor tokens = random_tokens(2, 16, 3);
  weight_of(*model, "layers.0.attention.q_norm.weight")->set_trains(false);
  weight_of(*model, "layers.1.attention.k_norm.weight")->set_trains(false);
  gradients_of(*model, tokens, {});
  ForwardContext context;
  model->forward(tokens, context).square().mean().backward();
  for (const ParameterPtr& parameter : model->parameters()) {
    INFO(parameter->name);
    CHECK(parameter->value.grad().defined() == parameter->trains());
  }
}

TEST_CASE("one node: weights that do not train get no gradient, and the others theirs", "[one_node]") {
  const auto model = tiny_model(tiny_config());
  const at::Tensor tokens = random_tokens(2, 16, 3);
  const std::vector<at::Tensor> all = gradients_of(*model, tokens, {});
  for (const char* name : {"layers.0.attention.k_proj.weight", "layers.1.mlp.gate_proj.weight", "layers.1.attention.o_proj.weight"}) {
    weight_of(*model, name)->set_trains(false);
  }
  const std::vector<at::Tensor> some = gradients_of(*model, tokens, {});
  const ParameterList parameters = model->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    INFO(parameters[i]->name);
    CHECK(some[i + 1].defined() == parameters[i]->trains());
    CHECK((!parameters[i]->trains() || some[i + 1].equal(all[i + 1])));
  }
}

TEST_CASE("one node: somebody who looks at a part of it sees the formula's results", "[one_node]") {
  const auto model = tiny_model(tiny_config());
  const at::Tensor tokens = random_tokens(1, 8, 3);
  at::Tensor seen;
  const Observation look(child_at(model, "layers.0.mlp.up_proj"), [&](const at::Tensor&, const at::Tensor& out) {
    seen = out;
    return at::Tensor();
  });
  logits_of(*model, tokens);
  REQUIRE(seen.defined());
  CHECK(seen.size(2) == weight_of(*model, "layers.0.mlp.up_proj.weight")->shape[0]);
}

TEST_CASE("one node: weights of one input lie side by side in every type, and each is itself in files", "[one_node]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const auto model = tiny_model(tiny_config(), 1, type);
  const std::string layer = "layers.1.";
  const auto value = [&](const char* name) { return weight_of(*model, layer + name)->value; };
  const at::Tensor q = value("attention.q_proj.weight"), k = value("attention.k_proj.weight"), v = value("attention.v_proj.weight");
  const at::Tensor qkv = stacked({q, k, v});
  REQUIRE(qkv.defined());
  CHECK(qkv.equal(at::cat({q.detach(), k.detach(), v.detach()})));
  CHECK(stacked({value("mlp.gate_proj.weight"), value("mlp.up_proj.weight")}).defined());
  CHECK(!stacked({q, v}).defined());
  CHECK(!stacked({v, value("attention.o_proj.weight")}).defined());
}
