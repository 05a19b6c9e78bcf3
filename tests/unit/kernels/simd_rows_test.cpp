// Kernels of rows: against the formulas in double, with bounds that follow from how often they round; any strides, widths and threads.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/gate/gate.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rotation/rotation.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kRound = 1.0 / (1 << 24);  // of fp32: half a unit in the last place

/// What a result in `type` may differ from the exact one, given how far its fp32 number may.
at::Tensor with_last_rounding(const at::Tensor& bound, const at::Tensor& exact, at::ScalarType type) {
  const double last = type == at::kBFloat16 ? 1.0 / (1 << 8) : kRound;  // bf16 rounds by 2^-9; twice where two numbers are added
  return bound + (exact.abs() + bound) * last + 1e-38;
}

void check_near(const at::Tensor& found, const at::Tensor& exact, const at::Tensor& bound) {
  REQUIRE(found.sizes() == exact.sizes());
  const at::Tensor excess = (found.to(at::kDouble) - exact).abs() - with_last_rounding(bound, exact, found.scalar_type());
  CHECK(excess.max().item<double>() <= 0);
}

/// Numbers of `type`, in double.
at::Tensor numbers(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type, double scale = 1) {
  return (drawn(shape, seed) * scale).to(type).to(at::kDouble);
}

at::Tensor leaf(const at::Tensor& x, at::ScalarType type) { return x.detach().to(type, false, /*copy=*/true).requires_grad_(); }

/// body() with one thread and with three gives the same bits.
void check_threads(const std::function<std::vector<at::Tensor>()>& body) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<at::Tensor> one = body();
  at::set_num_threads(3);
  const std::vector<at::Tensor> three = body();
  at::set_num_threads(before);
  CHECK(bitwise_equal(one, three));
}

/// Of gradients `g` of the norm of h (rows, C), what backward must give, and how far it may be off. Sums of k numbers in any order are
/// right to k - 1 roundings of the sum of sizes; 1 / rms to half of that and a few.
struct NormExpectation {
  at::Tensor y, dx, dfactor, y_bound, dx_bound, dfactor_bound;

  NormExpectation(const at::Tensor& h, const at::Tensor& factor, const at::Tensor& g, double eps) {
    const double width = static_cast<double>(h.size(1)), rows = static_cast<double>(h.size(0));
    const at::Tensor r = (h.square().mean(1, true) + eps).rsqrt(), n = h * r, f = factor.defined() ? factor : at::ones({1}, at::kDouble);
    y = n * f;
    y_bound = y.abs() * (width / 2 + 8) * kRound;
    const at::Tensor gf = g * f;
    dx = (gf - n * (gf * n).mean(1, true)) * r;
    dx_bound = (gf.abs() + n.abs() * (gf * n).abs().mean(1, true)) * r * (2 * width + 16) * kRound;
    dfactor = (g * n).sum(0);
    dfactor_bound = (g * n).abs().sum(0) * (rows + width / 2 + 10) * kRound;
  }
};

}  // namespace

TEST_CASE("kernels of rows: the norm and its gradients are right to their roundings", "[rows]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = GENERATE(1, 7, 33, 100, 256);
  const bool with_factor = GENERATE(true, false);
  CAPTURE(type, width, with_factor);
  const at::Tensor h = numbers({70, width}, 1, type, 3), g = numbers({70, width}, 2, type);
  const at::Tensor factor = with_factor ? numbers({width}, 3, at::kFloat) : at::Tensor();
  const NormExpectation expected(h, factor, g, 1e-5);
  const at::Tensor x = leaf(h, type), weight = with_factor ? leaf(factor, at::kFloat) : at::Tensor();
  const at::Tensor y = fused_rms_norm(x, weight, 1e-5);
  y.backward(g.to(type));
  check_near(y.detach(), expected.y, expected.y_bound);
  check_near(x.grad(), expected.dx, expected.dx_bound);
  if (with_factor) {
    check_near(weight.grad(), expected.dfactor, expected.dfactor_bound);
  }
}

TEST_CASE("kernels of rows: a sum and its norm at once have the bits of one after the other", "[rows]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = GENERATE(1, 33, 256);
  CAPTURE(type, width);
  const auto outcome = [&](bool at_once, bool both) {
    const at::Tensor x = leaf(drawn({3, 25, width}, 1), type), branch = leaf(drawn({3, 25, width}, 2), type),
                     factor = leaf(drawn({width}, 3), at::kFloat);
    SumAndNorm out = at_once ? fused_add_rms_norm(x, branch, factor, 1e-5) : SumAndNorm{x + branch, {}};
    out.norm = at_once ? out.norm : fused_rms_norm(out.sum, factor, 1e-5);
    at::Tensor loss = (out.norm * drawn({3, 25, width}, 4).to(type)).sum();
    loss = both ? loss + (out.sum * drawn({3, 25, width}, 5).to(type)).sum() : loss;
    loss.backward();
    return std::vector<at::Tensor>{out.sum.detach(), out.norm.detach(), x.grad(), branch.grad(), factor.grad()};
  };
  CHECK(bitwise_equal(outcome(true, true), outcome(false, true)));
  CHECK(bitwise_equal(outcome(true, false), outcome(false, false)));
}

TEST_CASE("kernels of rows: who reads the sum alone gets its gradient alone", "[rows]") {
  const at::Tensor x = leaf(drawn({4, 8}, 1), at::kFloat), factor = leaf(drawn({8}, 3), at::kFloat);
  (fused_add_rms_norm(x, x.detach(), factor, 1e-5).sum * 2).sum().backward();
  CHECK(x.grad().eq(2).all().item<bool>());
  CHECK_FALSE(factor.grad().defined());
}

TEST_CASE("kernels of rows: what a sum and its norm give can be differentiated twice", "[rows]") {
  const auto second = [](auto op) {
    const at::Tensor x = leaf(drawn({3, 8}, 1), at::kFloat), factor = leaf(drawn({8}, 2), at::kFloat);
    const SumAndNorm out = op(x, x * 2, factor, 1e-5);
    const at::Tensor z = ((out.norm + out.sum.square()) * drawn({3, 8}, 5, at::kFloat)).sum();
    const at::Tensor gradient = torch::autograd::grad({z}, {x}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.square().sum()}, {x})[0];
  };
  CHECK(relative_difference(second(fused_add_rms_norm), second(plain_add_rms_norm)) < 1e-5);  // some hundred roundings of numbers near 1
}

TEST_CASE("kernels of rows: every gate and both its gradients are right to their roundings", "[rows]") {
  const GateKind kind =
      GENERATE(GateKind::silu, GateKind::gelu, GateKind::gelu_tanh, GateKind::relu, GateKind::relu2, GateKind::quick_gelu, GateKind::tanh);
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = GENERATE(1, 7, 33, 100);
  CAPTURE(static_cast<int>(kind), type, width);
  at::Tensor gate = numbers({50, width}, 1, type, 3);
  gate.view(-1).narrow(0, 0, 10).copy_(at::tensor({0.0, 20.0, -20.0, 90.0, -90.0, 1e4, -1e4, 1e-30, 6.0, -6.0}).to(type));
  const at::Tensor up = numbers({50, width}, 2, type), g = numbers({50, width}, 3, type);
  const at::Tensor a = leaf(gate, at::kDouble);
  const at::Tensor act = activated(kind, a);
  act.sum().backward();
  const at::Tensor x = leaf(gate, type), y = leaf(up, type);
  const at::Tensor out = fused_gate(kind, x, y);
  out.backward(g.to(type));
  // e^x is right to 4 roundings, the logistic and Phi to 8, what is made of them to 12; the worst slope is that of gelu_tanh, whose
  // exponent is off by 4 roundings of itself, as far as that is seen.
  const at::Tensor value_bound = (1 + gate.abs() + gate.square()) * 12 * kRound;
  check_near(out.detach(), act.detach() * up, value_bound * up.abs());
  check_near(y.grad(), act.detach() * g, value_bound * g.abs());
  check_near(x.grad(), a.grad() * g * up, (1 + gate.abs()) * 40 * kRound * (g * up).abs());
}

TEST_CASE("kernels of rows: a gate passes what is no number on", "[rows]") {
  const GateKind kind =
      GENERATE(GateKind::silu, GateKind::gelu, GateKind::gelu_tanh, GateKind::relu, GateKind::relu2, GateKind::quick_gelu, GateKind::tanh);
  const at::Tensor gate = at::full({1, 20}, std::numeric_limits<float>::quiet_NaN());
  CHECK(fused_gate(kind, gate, at::ones({1, 20})).isnan().all().item<bool>());
}

TEST_CASE("kernels of rows: the gradients of halves of one matrix are halves of one matrix", "[rows]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = 33;
  const at::Tensor both = drawn({2, 9, 2 * width}, 1).to(type);
  const at::Tensor gate = both.narrow(-1, 0, width).detach().requires_grad_(), up = both.narrow(-1, width, width).detach().requires_grad_();
  const at::Tensor far_gate = gate.detach().contiguous().requires_grad_(), far_up = up.detach().contiguous().requires_grad_();
  const at::Tensor direction = drawn({2, 9, width}, 2).to(type);
  const at::Tensor out = fused_gate(GateKind::silu, gate, up), far_out = fused_gate(GateKind::silu, far_gate, far_up);
  const std::vector<at::Tensor> gradients = torch::autograd::grad({out}, {gate, up}, {direction});
  const std::vector<at::Tensor> far_gradients = torch::autograd::grad({far_out}, {far_gate, far_up}, {direction});
  CHECK(bitwise_equal({out.detach(), gradients[0], gradients[1]}, {far_out.detach(), far_gradients[0], far_gradients[1]}));
  CHECK(gradients[0].stride(-2) == 2 * width);
  CHECK(gradients[1].data_ptr() == static_cast<char*>(gradients[0].data_ptr()) + width * gradients[0].element_size());
}

TEST_CASE("kernels of rows: rotations are right to their roundings, whatever lies where", "[rows]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const bool interleaved = GENERATE(true, false), by_text = GENERATE(true, false);
  const auto part = GENERATE(std::pair{2, 2}, std::pair{8, 6}, std::pair{33, 14}, std::pair{64, 64}, std::pair{100, 50});
  const std::int64_t width = part.first, turned = part.second;
  CAPTURE(type, interleaved, by_text, width, turned);
  constexpr std::int64_t batch = 2, heads = 3, length = 5;
  const at::Tensor angles = by_text ? drawn({batch, 1, length, turned / 2}, 1) : drawn({length, turned / 2}, 1);
  const at::Tensor cos = angles.cos().to(at::kFloat), sin = angles.sin().to(at::kFloat);
  // A part of wider rows (B, T, H D + 1), seen as (B, H, T, D): no row begins where a vector would like it.
  const at::Tensor rows = numbers({batch, length, heads * width + 1}, 2, type);
  const auto heads_of = [&](const at::Tensor& all) {
    return all.narrow(-1, 1, heads * width).unflatten(-1, {heads, width}).transpose(1, 2);
  };
  const at::Tensor exact_x = heads_of(rows).detach().requires_grad_(), x = heads_of(rows.to(type)).detach().requires_grad_();
  const at::Tensor g = numbers({batch, heads, length, width}, 3, type);
  const at::Tensor exact = plain_rotation(exact_x, cos.to(at::kDouble), sin.to(at::kDouble), interleaved);
  const at::Tensor out = fused_rotation(x, cos, sin, interleaved);
  exact.backward(g);
  out.backward(g.to(type));
  const auto bound = [](const at::Tensor& of) { return of.abs().amax(-1, true) * 8 * kRound; };  // |a cos| + |b sin| <= 2 of the largest
  check_near(out.detach(), exact.detach(), bound(rows.abs().amax().expand_as(exact)));
  check_near(x.grad(), exact_x.grad(), bound(g));
  CHECK(out.transpose(1, 2).is_contiguous());
  CHECK(at::equal(out.detach().narrow(-1, turned, width - turned), x.detach().narrow(-1, turned, width - turned)));
}

TEST_CASE("kernels of rows: the number of threads changes no bit", "[rows]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  constexpr std::int64_t rows = 1500, width = 100;
  const at::Tensor a = drawn({rows, width}, 1).to(type), b = drawn({rows, width}, 2).to(type), g = drawn({rows, width}, 3).to(type);
  check_threads([&] {
    const at::Tensor x = leaf(a, type), branch = leaf(b, type), factor = leaf(drawn({width}, 4), at::kFloat);
    const SumAndNorm out = fused_add_rms_norm(x, branch, factor, 1e-5);
    out.norm.backward(g);
    return std::vector<at::Tensor>{out.norm.detach(), x.grad(), factor.grad()};
  });
  check_threads([&] {
    const at::Tensor x = leaf(a, type), up = leaf(b, type);
    const at::Tensor out = fused_gate(GateKind::gelu, x, up);
    out.backward(g);
    return std::vector<at::Tensor>{out.detach(), x.grad(), up.grad()};
  });
  const at::Tensor angles = drawn({rows / 5, 10}, 5).to(at::kFloat);
  check_threads([&] { return std::vector<at::Tensor>{fused_rotation(a.view({1, 5, rows / 5, width}), angles.cos(), angles.sin(), true)}; });
}

TEST_CASE("kernels of rows: heads of packed projections need no copy to be normed", "[rows]") {
  const at::Tensor packed = drawn({2, 5, 4 * 8 + 3}, 1, at::kFloat);
  const at::Tensor heads = packed.narrow(-1, 2, 32).unflatten(-1, {4, 8});  // (B, T, H, D)
  CHECK(at::equal(fused_rms_norm(heads, {}, 1e-5), fused_rms_norm(heads.contiguous(), {}, 1e-5)));
  const at::Tensor turned = heads.contiguous().transpose(1, 2);  // (B, H, T, D)
  const at::Tensor y = fused_rms_norm(turned, {}, 1e-5);
  CHECK(at::equal(y, fused_rms_norm(turned.contiguous(), {}, 1e-5)));
  CHECK(y.strides() == turned.strides());
}

}  // namespace kf::test
