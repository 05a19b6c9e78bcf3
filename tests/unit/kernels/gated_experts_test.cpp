// Experts as one node of the graph, against the formula in double that it is made of.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "kernels/gate/gate.h"
#include "kernels/gated_experts/gated_experts.h"
#include "kernels/grouped_linear/grouped_linear.h"
#include "kernels/product/product.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr std::int64_t kTokens = 19, kExperts = 5, kSlots = 2, kDim = 24, kHidden = 33, kOut = 20;

/// (N, k) distinct experts a token; the last expert gets nobody.
at::Tensor assignments() {
  const at::Tensor scores = at::rand({kTokens, kExperts}, at::detail::createCPUGenerator(7), at::TensorOptions(at::kFloat));
  scores.select(1, kExperts - 1).fill_(-1);
  return std::get<1>(scores.topk(kSlots, -1));
}

struct Layer {
  explicit Layer(at::ScalarType type, at::ScalarType of_weights) {
    const auto leaf = [](at::IntArrayRef shape, std::uint64_t seed, at::ScalarType in, double scale) {
      // As bf16 has them, so that all types compute with the same numbers.
      return (drawn(shape, seed) * scale).to(at::kBFloat16).to(in).requires_grad_();
    };
    x = leaf({kTokens, kDim}, 1, type, 1);
    gate = leaf({kExperts, kHidden, kDim}, 2, type, 0.3);
    up = leaf({kExperts, kHidden, kDim}, 3, type, 0.3);
    down = leaf({kExperts, kOut, kHidden}, 4, type, 0.3);
    weights = leaf({kTokens, kSlots}, 5, of_weights, 1);
    at::NoGradGuard no_grad;
    weights.select(0, 3).zero_();  // dropped assignments have weight 0, and their gradient all the same
  }
  std::vector<at::Tensor> leaves() const { return {x, gate, up, down, weights}; }

  at::Tensor x, gate, up, down, weights;
};

at::Tensor by_formula(const Layer& layer, GateKind kind, const ExpertRows& rows) {
  const at::Tensor in = gather_rows(layer.x, rows);
  const at::Tensor hidden = plain_gate(kind, fused_grouped_linear(in, layer.gate, {}, rows), fused_grouped_linear(in, layer.up, {}, rows));
  return combine_rows(fused_grouped_linear(hidden, layer.down, {}, rows), layer.weights, rows);
}

at::Tensor by_node(const Layer& layer, GateKind kind, const ExpertRows& rows) {
  return fused_gated_experts({layer.x, layer.gate, layer.up, layer.down, layer.weights, kind}, rows);
}

/// The result and the gradients of all leaves, in double.
std::vector<at::Tensor> outcome(const Layer& layer, const at::Tensor& y) {
  y.backward(drawn(y.sizes(), 9).to(at::kBFloat16).to(y.scalar_type()));
  std::vector<at::Tensor> out{y.detach().to(at::kDouble)};
  for (const at::Tensor& leaf : layer.leaves()) {
    out.push_back(leaf.grad().defined() ? leaf.grad().to(at::kDouble) : at::Tensor());
  }
  return out;
}

}  // namespace

TEST_CASE("experts as one node: results and gradients are those of the formula", "[gated_experts]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const GateKind kind = GENERATE(GateKind::silu, GateKind::gelu, GateKind::relu2);
  CAPTURE(type, static_cast<int>(kind));
  const ExpertRows rows(assignments(), kExperts);
  const Layer exact(at::kDouble, at::kDouble), layer(type, at::kFloat);
  const std::vector<at::Tensor> expected = outcome(exact, by_formula(exact, kind, rows)),
                                found = outcome(layer, by_node(layer, kind, rows));
  // Three products in a row of up to 33 terms on either way, and a sum over a token's rows; of bf16, what lies between is rounded ten
  // times.
  const double bound = type == at::kFloat ? 6 * 33 * 0x1p-24 : 10 * 0x1p-8;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_difference(found[i], expected[i]) < bound);
  }
  for (std::size_t i = 2; i <= 4; ++i) {  // of the expert to which nobody went
    CHECK(found[i][kExperts - 1].eq(0).all().item<bool>());
  }
}

TEST_CASE("experts as one node: gradients of gradients are those of the formula", "[gated_experts]") {
  const ExpertRows rows(assignments(), kExperts);
  const auto second = [&](auto* made, at::ScalarType type) {
    const Layer layer(type, type);
    const std::vector<at::Tensor> leaves = layer.leaves();
    const at::Tensor y = made(layer, GateKind::silu, rows);
    at::Tensor penalty = at::zeros({}, y.options().requires_grad(false));
    for (const at::Tensor& each : torch::autograd::grad({y.square().sum()}, leaves, {}, /*retain_graph=*/true, /*create_graph=*/true)) {
      penalty = penalty + each.square().sum();
    }
    return torch::autograd::grad({penalty}, leaves);
  };
  const std::vector<at::Tensor> expected = second(by_formula, at::kDouble), found = second(by_node, at::kFloat);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_difference(found[i].to(at::kDouble), expected[i]) < 4 * 6 * 33 * 0x1p-24);  // four passes over the three products
  }
}

TEST_CASE("experts as one node: only what is asked for has a gradient", "[gated_experts]") {
  const std::size_t frozen = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(frozen);
  const ExpertRows rows(assignments(), kExperts);
  const Layer all(at::kFloat, at::kFloat), some(at::kFloat, at::kFloat);
  some.leaves()[frozen].requires_grad_(false);
  const std::vector<at::Tensor> a = outcome(all, by_node(all, GateKind::silu, rows)),
                                b = outcome(some, by_node(some, GateKind::silu, rows));
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(b[i + 1].defined() == (i != frozen));
    CHECK((i == frozen || at::equal(a[i + 1], b[i + 1])));
  }
}

TEST_CASE("experts as one node: the number of threads changes no bit", "[gated_experts]") {
  const ExpertRows rows(assignments(), kExperts);
  set_products({.fp32_small = true});  // LibTorch's own do not promise it
  const auto run = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const Layer layer(at::kFloat, at::kFloat);
    std::vector<at::Tensor> all = outcome(layer, by_node(layer, GateKind::silu, rows));
    at::set_num_threads(before);
    return all;
  };
  const std::vector<at::Tensor> one = run(1), three = run(3);
  set_products({});
  CHECK(bitwise_equal(one, three));
}

TEST_CASE("experts as one node: what the kernel does not take is left to the formula", "[gated_experts]") {
  const ExpertRows rows(assignments(), kExperts);
  const Layer doubles(at::kDouble, at::kFloat);
  CHECK_FALSE(by_node(doubles, GateKind::silu, rows).defined());
  const ExpertRows nobody(at::empty({0, kSlots}, at::kLong), kExperts);
  const Layer layer(at::kFloat, at::kFloat);
  CHECK_FALSE(fused_gated_experts({at::empty({0, kDim}), layer.gate, layer.up, layer.down, at::empty({0, kSlots}), GateKind::silu}, nobody)
                  .defined());
}

}  // namespace kf::test
