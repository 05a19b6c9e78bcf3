// Routers alone: groups, losses, selection biases, the benchmark's random routing.

#include "model/moe/topk_router.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "model/moe/moe_book.h"
#include "moe_model.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

TopKRouterOptions options() {
  TopKRouterOptions o;
  o.dim = 6;
  o.experts = 8;
  o.top_k = 2;
  return o;
}

struct Lone {
  explicit Lone(const TopKRouterOptions& o, double std = 1.0) : router(o) {
    for (const ParameterPtr& parameter : router.parameters()) {
      const bool normal = parameter->init.kind == Init::Kind::normal;
      parameter->master = normal ? at::randn(parameter->shape, at::detail::createCPUGenerator(3), at::TensorOptions(at::kFloat)) * std
                                 : at::full(parameter->shape, parameter->init.std, at::kFloat);
      parameter->value = parameter->master;
    }
  }
  at::Tensor bias() {
    for (const ParameterPtr& parameter : router.parameters()) {
      if (parameter->name == "expert_bias") {
        return parameter->master;
      }
    }
    return {};
  }
  TopKRouter router;
};

at::Tensor some_tokens(std::int64_t count) {
  return at::randn({count, 6}, at::detail::createCPUGenerator(11), at::TensorOptions(at::kFloat));
}

}  // namespace

TEST_CASE("router: the balance loss is 1 at perfect balance whatever k", "[moe][H12]") {
  TopKRouterOptions o = options();
  o.experts = 4;
  o.top_k = GENERATE(1, 2);
  Lone lone(o, 0.0);  // every logit is 0: uniform probabilities
  CHECK(lone.router.route(some_tokens(16)).balance.item<double>() == Approx(1.0));
}

TEST_CASE("router: the balance of sequences is the mean of what each has alone", "[moe]") {
  TopKRouterOptions o = options();
  o.score = TopKRouterOptions::Score::sigmoid;
  o.sequence_weight = 0.25;
  o.by_sequence = true;
  Lone lone(o);
  const at::Tensor x = some_tokens(24);
  double sum = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    sum += lone.router.route(x.narrow(0, row * 8, 8)).balance.item<double>();
  }
  CHECK(lone.router.route_sequences(x, 8).balance.item<double>() == Approx(sum / 3).epsilon(1e-6));
  CHECK(lone.router.route_sequences(x, 24).balance.item<double>() == Approx(lone.router.route(x).balance.item<double>()));
}

TEST_CASE("router: chosen experts lie in the best groups", "[moe]") {
  TopKRouterOptions o = options();
  o.score = GENERATE(TopKRouterOptions::Score::softmax, TopKRouterOptions::Score::sigmoid, TopKRouterOptions::Score::sqrt_softplus);
  o.groups = 4;
  o.topk_groups = 2;
  o.top_k = 3;
  Lone lone(o);
  const at::Tensor x = some_tokens(64);
  const at::Tensor groups = lone.router.route(x).experts.div(2, "floor");  // (N, 3)
  for (const at::Tensor& row : groups.unbind(0)) {
    CHECK(std::get<0>(at::_unique(row)).numel() <= 2);
  }
  // With every group allowed the choice is the plain one.
  o.topk_groups = 4;
  Lone all(o);
  o.groups = o.topk_groups = 0;
  Lone plain(o);
  CHECK(all.router.route(x).experts.equal(plain.router.route(x).experts));
}

TEST_CASE("router: groups of sigmoid scores rank by their two best experts", "[moe]") {
  TopKRouterOptions o = options();
  o.dim = 8;
  o.score = TopKRouterOptions::Score::sigmoid;
  o.groups = 2;
  o.topk_groups = 1;
  Lone lone(o);
  for (const ParameterPtr& parameter : lone.router.parameters()) {
    parameter->master.copy_(at::eye(8));
  }
  // Group 0 has the best single expert, group 1 the better pair.
  const at::Tensor logits = at::tensor({3.0, -9.0, -9.0, -9.0, 2.0, 1.9, -9.0, -9.0}, at::kFloat).unsqueeze(0);
  CHECK(lone.router.route(logits).experts.equal(at::tensor({4, 5}, at::kLong).unsqueeze(0)));
}

TEST_CASE("router: the selection bias decides who is chosen and nothing else", "[moe]") {
  TopKRouterOptions o = options();
  o.score = TopKRouterOptions::Score::sigmoid;
  o.bias = SelectionBiasOptions{8, SelectionBiasOptions::Rule::sign, SelectionBiasOptions::Schedule::constant, 0.001};
  Lone lone(o);
  lone.bias().select(0, 5).fill_(10);
  const at::Tensor x = some_tokens(32);
  const Routing routing = lone.router.route(x);
  CHECK(routing.experts.select(1, 0).eq(5).all().item<bool>());
  const at::Tensor scores = at::linear(x, lone.router.parameters()[0]->value).sigmoid().gather(1, routing.experts);
  CHECK(at::allclose(routing.weights, scores / scores.sum(1, true)));
}

TEST_CASE("router: the sign rule moves the bias towards balance by its rate", "[moe]") {
  SelectionBiasOptions o{4, SelectionBiasOptions::Rule::sign, SelectionBiasOptions::Schedule::constant, 0.25};
  TopKRouterOptions r = options();
  r.experts = 4;
  r.score = TopKRouterOptions::Score::sigmoid;
  r.bias = o;
  Lone lone(r);
  lone.router.rebalance(at::tensor({9, 1, 5, 5}, at::kLong), 0);
  CHECK(lone.bias().equal(at::tensor({-0.25, 0.25, 0.0, 0.0}, at::kFloat)));
}

TEST_CASE("router: a weight that is alone stays the score, so that the loss reaches the router", "[moe]") {
  TopKRouterOptions o = options();
  o.score = GENERATE(TopKRouterOptions::Score::softmax, TopKRouterOptions::Score::sigmoid);
  o.top_k = 1;
  Lone lone(o);
  const at::Tensor weights = lone.router.route(some_tokens(16)).weights;
  CHECK(weights.lt(1).all().item<bool>());
  o.top_k = 3;
  o.scale = 2;
  Lone several(o);
  CHECK(at::allclose(several.router.route(some_tokens(16)).weights.sum(1), at::full({16}, 2.0f)));
}

TEST_CASE("router: random routing spreads tokens evenly and finds the same experts again", "[moe]") {
  TopKRouterOptions o = options();
  o.random = 5;
  Lone lone(o);
  const at::Tensor x = at::ones({4096, 6});  // one and the same token
  const at::Tensor experts = lone.router.route(x).experts;
  CHECK(experts.equal(lone.router.route(x).experts));
  const at::Tensor counts = count_assignments(experts, 8).to(at::kDouble);
  CHECK(counts.min().item<double>() / counts.max().item<double>() > 0.85);
}
