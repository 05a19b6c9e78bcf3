// Fused pieces: their own backwards against differences, and values and gradients against the plain twins.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/fused_gate.h"
#include "kernels/fused_norm.h"
#include "kernels/fused_rotation.h"
#include "model/layer/dropout.h"
#include "model/layer/rope.h"
#include "model/layer/score.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kNumeric = 1e-8;  // central differences of double numbers near 1

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& factor, double eps) {
  const at::Tensor wide = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  return (wide * at::rsqrt(wide.square().mean(-1, true) + eps) * factor).to(x.scalar_type());
}

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

TEST_CASE("fused: backwards of norm, gate and rotation are the slopes of their forwards", "[fused]") {
  const at::Tensor x = drawn({3, 8}, 1), other = drawn({3, 8}, 2), factor = drawn({8}, 3);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(in, factor, 1e-3); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(in, {}, 1e-3); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_rms_norm(x, in, 1e-3); }, factor) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_silu_gate(in, other); }, x) < kNumeric);
  CHECK(gradient_error([&](const at::Tensor& in) { return fused_silu_gate(other, in); }, x) < kNumeric);
  const at::Tensor cos = drawn({3, 4}, 4), sin = drawn({3, 4}, 5);  // the formula holds for any two tables
  for (const bool interleaved : {true, false}) {
    CHECK(gradient_error([&](const at::Tensor& in) { return fused_rotation(in, cos, sin, interleaved); }, x) < kNumeric);
  }
}

TEST_CASE("fused: norm, gate and rotation equal their plain twins, once and twice differentiated", "[fused]") {
  const at::Tensor factor = drawn({8}, 3), cos = drawn({6, 4}, 4).to(at::kFloat), sin = drawn({6, 4}, 5).to(at::kFloat);
  struct Pair {
    const char* name;
    Two fused, plain;
    at::Tensor b;
  };
  const std::vector<Pair> pairs{
      {"norm", [](const at::Tensor& x, const at::Tensor& f) { return fused_rms_norm(x, f, 1e-5); },
       [](const at::Tensor& x, const at::Tensor& f) { return plain_norm(x, f, 1e-5); }, factor},
      {"gate", [](const at::Tensor& x, const at::Tensor& up) { return fused_silu_gate(x, up); },
       [](const at::Tensor& x, const at::Tensor& up) { return at::silu(x) * up; }, drawn({2, 6, 8}, 7)},
      {"rotation", [&](const at::Tensor& x, const at::Tensor&) { return fused_rotation(x, cos, sin, true); },
       [&](const at::Tensor& x, const at::Tensor&) { return plain_rotation(x, cos, sin, true); }, factor},
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

TEST_CASE("fused: attention's kernel equals the formula with windows, groups of heads and distances", "[fused]") {
  const std::int64_t window = GENERATE(0, 5), alibi = GENERATE(0, 4);
  const at::Tensor q = drawn({2, 4, 12, 8}, 1, at::kFloat), k = drawn({2, 2, 12, 8}, 2, at::kFloat),
                   v = drawn({2, 2, 12, 8}, 3, at::kFloat);
  const auto run = [&](const char* backend) {
    ScoreOptions options;
    options.scale = 0.3;
    options.backend = backend;
    options.alibi_heads = alibi;
    if (window > 0) {
      options.reach = {Reach::Kind::local, window};
    }
    const Mixer mixer(options, Dropout(0, 1, 0, "scores"));
    const at::Tensor keys = k.clone().requires_grad_();
    std::vector<at::Tensor> out =
        outcome([&](const at::Tensor& x, const at::Tensor& y) { return mixer.mix(x, keys, y, {}, ForwardContext(), true); }, q, v);
    out.push_back(keys.grad());
    return out;
  };
  const auto kernel = run("auto"), formula = run("math");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    CAPTURE(i, window, alibi);
    CHECK(relative_difference(kernel[i], formula[i]) < 2e-5);
  }
}

TEST_CASE("fused: slopes of alibi are those of its paper", "[fused]") {
  CHECK(at::allclose(alibi_slopes(8), at::tensor({0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}).to(at::kFloat)));
  // Five heads: those of four, and the first of eight.
  CHECK(at::allclose(alibi_slopes(5), at::tensor({0.25, 0.0625, 0.015625, 0.00390625, 0.5}).to(at::kFloat)));
}

}  // namespace kf::test
