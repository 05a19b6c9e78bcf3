// Kernels: their own backwards against differences, and values and gradients against the plain twins.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/adamw/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/gate/gate.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rotation/rotation.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kNumeric = 1e-8;  // central differences of double numbers near 1

using Two = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

/// f(a, b) and the gradients of both, along a drawn direction.
std::vector<at::Tensor> outcome(const Two& f, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.clone().requires_grad_(), y = b.clone().requires_grad_();
  const at::Tensor z = f(x, y);
  (z * drawn(z.sizes(), 5).to(z.scalar_type())).sum().backward();
  std::vector<at::Tensor> out{z.detach(), x.grad()};
  out.push_back(y.grad().defined() ? y.grad() : at::zeros({1}));
  return out;
}

/// Gradients of |gradient|^2: what differentiating twice gives.
at::Tensor second(const Two& f, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.clone().requires_grad_(), y = b.clone().requires_grad_();
  const at::Tensor z = (f(x, y) * drawn(f(x, y).sizes(), 5)).sum();
  const at::Tensor gradient = torch::autograd::grad({z}, {x}, {}, true, /*create_graph=*/true)[0];
  return torch::autograd::grad({gradient.square().sum()}, {x})[0];
}

}  // namespace

TEST_CASE("kernels: backwards of norm, gate and rotation are the slopes of their forwards", "[twins]") {
  const at::Tensor x = drawn({3, 8}, 1), other = drawn({3, 8}, 2), factor = drawn({8}, 3);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(in, factor, 1e-3); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(in, {}, 1e-3); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(x, in, 1e-3); }, factor) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_gate(GateKind::silu, in, other); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_gate(GateKind::silu, other, in); }, x) < kNumeric);
  const at::Tensor cos = drawn({3, 4}, 4), sin = drawn({3, 4}, 5);  // the formula holds for any two tables
  for (const bool interleaved : {true, false}) {
    CHECK(gradient_error([&](const at::Tensor& in) { return fused_rotation(in, cos, sin, interleaved); }, x) < kNumeric);
  }
}

TEST_CASE("kernels: norm, gate and rotation equal their plain twins, once and twice differentiated", "[twins]") {
  const at::Tensor factor = drawn({8}, 3), cos = drawn({6, 4}, 4).to(at::kFloat), sin = drawn({6, 4}, 5).to(at::kFloat);
  struct Pair {
    const char* name;
    Two fused, plain;
    at::Tensor b;
  };
  const std::vector<Pair> pairs{
      {"norm", [](const at::Tensor& x, const at::Tensor& f) { return fused_rms_norm(x, f, 1e-5); },
       [](const at::Tensor& x, const at::Tensor& f) { return plain_rms_norm(x, f, 1e-5); }, factor},
      {"gate", [](const at::Tensor& x, const at::Tensor& up) { return fused_gate(GateKind::silu, x, up); },
       [](const at::Tensor& x, const at::Tensor& up) { return plain_gate(GateKind::silu, x, up); }, drawn({2, 6, 8}, 7)},
      {"rotation", [&](const at::Tensor& x, const at::Tensor&) { return fused_rotation(x, cos, sin, true); },
       [&](const at::Tensor& x, const at::Tensor&) { return plain_rotation(x, cos, sin, true); }, factor},
      {"rotation of a part",
       [&](const at::Tensor& x, const at::Tensor&) { return fused_rotation(x, cos.narrow(1, 0, 3), sin.narrow(1, 0, 3), false); },
       [&](const at::Tensor& x, const at::Tensor&) { return plain_rotation(x, cos.narrow(1, 0, 3), sin.narrow(1, 0, 3), false); }, factor},
      {"half rotation", [&](const at::Tensor& x, const at::Tensor&) { return fused_rotation(x, cos, sin, false); },
       [&](const at::Tensor& x, const at::Tensor&) { return plain_rotation(x, cos, sin, false); }, factor},
  };
  const at::Tensor x = drawn({2, 6, 8}, 6);
  for (const Pair& pair : pairs) {
    CAPTURE(pair.name);
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const double tolerance = type == at::kDouble ? 1e-12 : type == at::kFloat ? 1e-5 : 2e-2;
      const at::ScalarType vectors = type == at::kBFloat16 ? at::kFloat : type;  // factors of norms stay fp32
      const at::Tensor b = pair.b.dim() == 1 ? pair.b.to(vectors) : pair.b.to(type);
      const auto fused = outcome(pair.fused, x.to(type), b), plain = outcome(pair.plain, x.to(type), b);
      for (std::size_t i = 0; i < fused.size(); ++i) {
        CAPTURE(i, type);
        CHECK(fused[i].scalar_type() == plain[i].scalar_type());
        CHECK((fused[i] - plain[i]).abs().max().item<double>() <= tolerance * plain[i].abs().max().item<double>());
      }
    }
    if (std::string(pair.name).find("rotation") == std::string::npos) {  // a line's gradient is constant
      CHECK(relative_difference(second(pair.fused, x, pair.b), second(pair.plain, x, pair.b)) < 1e-10);
    }
  }
}

TEST_CASE("kernels: attention equals its formula with masks, with a bias and causally", "[twins]") {
  const char* const kind = GENERATE("causal", "all", "mask", "bias");
  CAPTURE(kind);
  const at::Tensor q = drawn({2, 4, 12, 8}, 1, at::kFloat), k = drawn({2, 4, 12, 8}, 2, at::kFloat),
                   v = drawn({2, 4, 12, 8}, 3, at::kFloat);
  AttentionInput in{q, k, v, {}, std::string(kind) == "causal", {}, {}, nullptr, nullptr};
  if (std::string(kind) == "mask") {
    in.mask = at::ones({12, 12}, at::kBool).tril().triu(-4).view({1, 1, 12, 12});
  } else if (std::string(kind) == "bias") {
    in.bias = drawn({1, 4, 12, 12}, 4, at::kFloat);
  }
  AttentionRules rules;
  rules.scale = 0.3;
  const auto run = [&](const auto& op) {
    return outcome(
        [&](const at::Tensor& x, const at::Tensor& y) {
          AttentionInput each = in;
          each.q = x;
          each.v = y;
          return op(each, rules);
        },
        q, v);
  };
  const auto kernel = run(fused_attention), formula = run(plain_attention);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    CAPTURE(i);
    CHECK(relative_difference(kernel[i], formula[i]) < 2e-5);
  }
  CHECK_FALSE(at::equal(kernel[0], formula[0]));  // else the twin is compared with itself
}

TEST_CASE("kernels: what no attention kernel has is the formula's, to the last bit", "[twins]") {
  at::Tensor x = drawn({1, 2, 6, 4}, 1);  // in double: the kernel for CPUs has caps and sinks, in fp32 and bf16
  AttentionInput in{x, x, x, {}, true, {}, {}, nullptr, nullptr};
  AttentionRules rules;
  SECTION("a cap") { rules.softcap = 2; }
  SECTION("sinks") { in.sinks = at::ones({2}); }
  SECTION("dropout") {
    x = x.to(at::kFloat);
    in.q = in.k = in.v = x;
    in.drop = [](const at::Tensor& weights) { return weights * 2; };
  }
  CHECK(at::equal(fused_attention(in, rules), plain_attention(in, rules)));
  CHECK_FALSE(at::allclose(fused_attention(in, rules), plain_attention({x, x, x, {}, true, {}, {}, nullptr, nullptr}, {})));
}

namespace {

/// The weights after three updates of AdamW, and their moments.
std::vector<at::Tensor> after_updates(void (*adamw)(const AdamWLists&, const AdamWNumbers&), const AdamWNumbers& numbers) {
  std::vector<at::Tensor> weights, m, v, steps;
  for (const std::int64_t rows : {3, 5}) {
    weights.push_back(drawn({rows, 4}, static_cast<std::uint64_t>(rows), at::kFloat));
    m.push_back(at::zeros({rows, 4}));
    v.push_back(at::zeros({rows, 4}));
    steps.push_back(at::full({}, static_cast<double>(rows), at::kFloat));  // begun at different ones
  }
  for (std::uint64_t update = 0; update < 3; ++update) {
    const std::vector<at::Tensor> gradients{drawn({3, 4}, 10 + update, at::kFloat), drawn({5, 4}, 20 + update, at::kFloat)};
    for (const at::Tensor& step : steps) {
      step.add_(1);
    }
    adamw({weights, gradients, m, v, steps}, numbers);
  }
  weights.insert(weights.end(), m.begin(), m.end());
  weights.insert(weights.end(), v.begin(), v.end());
  return weights;
}

}  // namespace

TEST_CASE("kernels: AdamW's equals its twin, whatever step weights are at", "[twins]") {
  AdamWNumbers numbers{0.1, 0.2};
  numbers.eps_root = GENERATE(0.0, 0.1);
  numbers.nesterov = GENERATE(false, true);
  const std::vector<at::Tensor> fused = after_updates(fused_adamw, numbers), plain = after_updates(plain_adamw, numbers);
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CHECK(relative_difference(fused[i], plain[i]) < 2e-6);
  }
}

}  // namespace kf::test
