// LayerNorm by rows: against the formula in double, with bounds that follow from how often it rounds, and against the plain twin.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "kernels/layer_norm/layer_norm.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kRound = 0x1p-24;  // of fp32: half a unit in the last place

at::Tensor leaf(const at::Tensor& x, at::ScalarType type) { return x.detach().to(type, false, /*copy=*/true).requires_grad_(); }
at::Tensor numbers(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type, double scale = 1) {
  return (drawn(shape, seed) * scale).to(type).to(at::kDouble);
}

void check_near(const at::Tensor& found, const at::Tensor& exact, const at::Tensor& bound) {
  REQUIRE(found.sizes() == exact.sizes());
  const double last = found.scalar_type() == at::kBFloat16 ? 0x1p-8 : kRound;  // bf16 rounds by 2^-9; twice where two numbers are added
  const at::Tensor most = bound + (exact.abs() + bound) * last + 1e-38;
  CHECK(((found.to(at::kDouble) - exact).abs() - most).max().item<double>() <= 0);
}

/// What the norm of h (rows, C) and its backward must give for gradients `g`, and how far they may be off. A sum of C numbers in any order
/// is right to C roundings of the sum of sizes: so is the mean, by which h - mean is off, to C / 2 + 2 of the sizes of h, since vectors add
/// up a part of it each; the variance to C + 2 of itself and what that does to it, and 1 / sqrt to half of that.
struct Expectation {
  at::Tensor y, dx, dfactor, dbias, y_bound, dx_bound, dfactor_bound, dbias_bound;

  Expectation(const at::Tensor& h, const at::Tensor& factor, const at::Tensor& bias, const at::Tensor& g, double eps) {
    const double width = static_cast<double>(h.size(1)), rows = static_cast<double>(h.size(0));
    const auto mean = [](const at::Tensor& x) { return x.mean(1, true); };
    const at::Tensor middle = h - mean(h), r = (mean(middle.square()) + eps).rsqrt(), n = middle * r;
    const at::Tensor f = factor.defined() ? factor : at::ones({1}, at::kDouble);
    const at::Tensor off_mean = (width + 2) * kRound * mean(h.abs()) * r;  // of n, by the mean
    // n by the mean, by 1 / sqrt(var), which an error of the mean moves in second order alone, and by its own roundings.
    const at::Tensor n_bound = off_mean + n.abs() * ((width / 2 + 8) * kRound + off_mean.square());
    y = bias.defined() ? n * f + bias : n * f;
    y_bound = n_bound * f.abs() + 2 * kRound * (y.abs() + (n * f).abs());
    const at::Tensor gf = g * f, along = mean(gf * n), along_size = mean((gf * n).abs());
    dx = (gf - mean(gf) - n * along) * r;
    const at::Tensor along_bound = mean(gf.abs() * n_bound) + along_size * (width + 4) * kRound;
    dx_bound = r * (kRound * (4 * gf.abs() + (width + 4) * mean(gf.abs())) + n_bound * along.abs() + n.abs() * along_bound) +
               dx.abs() * ((width / 2 + 12) * kRound + off_mean.square());
    dfactor = (g * n).sum(0);
    dfactor_bound = (g.abs() * n_bound).sum(0) + (g * n).abs().sum(0) * (rows + 2) * kRound;
    dbias = g.sum(0);
    dbias_bound = g.abs().sum(0) * (rows + 2) * kRound;
  }
};

using Op = at::Tensor (*)(const at::Tensor&, const LayerNormWeights&, double);

}  // namespace

TEST_CASE("layer norm: values and gradients are right to their roundings, with factor and bias or without", "[layer_norm]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = GENERATE(1, 7, 33, 100, 256);
  const bool with_factor = GENERATE(true, false), with_bias = GENERATE(true, false);
  CAPTURE(type, width, with_factor, with_bias);
  const at::Tensor h = numbers({70, width}, 1, type, 3) + (type == at::kFloat ? 0.5 : 0), g = numbers({70, width}, 2, type);
  const at::Tensor factor = with_factor ? numbers({width}, 3, at::kFloat) : at::Tensor();
  const at::Tensor bias = with_bias ? numbers({width}, 4, at::kFloat) : at::Tensor();
  const at::Tensor x = leaf(h, type), f = with_factor ? leaf(factor, at::kFloat) : at::Tensor(),
                   b = with_bias ? leaf(bias, at::kFloat) : at::Tensor();
  const Expectation expected(x.detach().to(at::kDouble), factor, bias, g, 1e-5);
  const at::Tensor y = fused_layer_norm(x, {f, b}, 1e-5);
  y.backward(g.to(type));
  check_near(y.detach(), expected.y, expected.y_bound);
  check_near(x.grad(), expected.dx, expected.dx_bound);
  if (with_factor) {
    check_near(f.grad(), expected.dfactor, expected.dfactor_bound);
  }
  if (with_bias) {
    check_near(b.grad(), expected.dbias, expected.dbias_bound);
  }
}

TEST_CASE("layer norm: the plain twin and the kernel agree, once and twice differentiated", "[layer_norm]") {
  const bool with_bias = GENERATE(true, false);
  CAPTURE(with_bias);
  const auto outcome = [&](Op op, at::ScalarType type, bool twice) {
    const at::ScalarType vectors = type == at::kBFloat16 ? at::kFloat : type;
    const at::Tensor x = leaf(drawn({2, 6, 40}, 1), type), f = leaf(drawn({40}, 2), vectors),
                     b = with_bias ? leaf(drawn({40}, 3), vectors) : at::Tensor();
    const at::Tensor z = (op(x, {f, b}, 1e-3) * drawn({2, 6, 40}, 4).to(type)).sum();
    if (!twice) {
      z.backward();
      return std::vector<at::Tensor>{x.grad(), f.grad(), with_bias ? b.grad() : f.grad()};
    }
    const at::Tensor gradient = torch::autograd::grad({z}, {x}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({gradient.square().sum()}, {x, f});
  };
  for (const bool twice : {false, true}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      if (twice && type == at::kBFloat16) {
        continue;
      }
      CAPTURE(twice, type);
      // Some hundred roundings of numbers near 1; of bf16 some of results, of which the last may fall on either side.
      const double bound = type == at::kDouble ? 1e-12 : type == at::kFloat ? 2e-5 : 2e-2;
      const auto fused = outcome(fused_layer_norm, type, twice), plain = outcome(plain_layer_norm, type, twice);
      for (std::size_t i = 0; i < fused.size(); ++i) {
        CAPTURE(i);
        CHECK(fused[i].scalar_type() == plain[i].scalar_type());
        CHECK(relative_difference(fused[i], plain[i]) < bound);
      }
    }
  }
  CHECK_FALSE(bitwise_equal(outcome(fused_layer_norm, at::kFloat, false), outcome(plain_layer_norm, at::kFloat, false)));
}

TEST_CASE("layer norm: only what is asked for has a gradient", "[layer_norm]") {
  const bool factor = GENERATE(true, false), bias = GENERATE(true, false), with_factor = GENERATE(true, false);
  const at::Tensor x = leaf(drawn({5, 12}, 1), at::kFloat), f = drawn({12}, 2, at::kFloat).requires_grad_(factor),
                   b = drawn({12}, 3, at::kFloat).requires_grad_(bias);
  fused_layer_norm(x, {with_factor ? f : at::Tensor(), b}, 1e-5).square().sum().backward();
  CHECK(x.grad().defined());
  CHECK(f.grad().defined() == (factor && with_factor));
  CHECK(b.grad().defined() == bias);
  if (bias) {
    CHECK(b.grad().sizes() == b.sizes());
  }
}

TEST_CASE("layer norm: a sum and its norm at once have the bits of one after the other", "[layer_norm]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const std::int64_t width = GENERATE(1, 33, 256);
  const bool with_factor = GENERATE(true, false);
  CAPTURE(type, width, with_factor);
  const auto outcome = [&](bool at_once, bool both) {
    const at::Tensor x = leaf(drawn({3, 25, width}, 1), type), branch = leaf(drawn({3, 25, width}, 2), type),
                     factor = with_factor ? leaf(drawn({width}, 3), at::kFloat) : at::Tensor(), bias = leaf(drawn({width}, 6), at::kFloat);
    SumAndNorm out = at_once ? fused_add_layer_norm(x, branch, {factor, bias}, 1e-5) : SumAndNorm{x + branch, {}};
    out.norm = at_once ? out.norm : fused_layer_norm(out.sum, {factor, bias}, 1e-5);
    at::Tensor loss = (out.norm * drawn({3, 25, width}, 4).to(type)).sum();
    loss = both ? loss + (out.sum * drawn({3, 25, width}, 5).to(type)).sum() : loss;
    loss.backward();
    return std::vector<at::Tensor>{out.sum.detach(), out.norm.detach(), x.grad(), branch.grad(), bias.grad()};
  };
  CHECK(bitwise_equal(outcome(true, true), outcome(false, true)));
  CHECK(bitwise_equal(outcome(true, false), outcome(false, false)));
}

TEST_CASE("layer norm: the number of threads changes no bit", "[layer_norm]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const auto outcome = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const at::Tensor x = leaf(drawn({1500, 100}, 1), type), factor = leaf(drawn({100}, 2), at::kFloat),
                     bias = leaf(drawn({100}, 3), at::kFloat);
    const at::Tensor y = fused_layer_norm(x, {factor, bias}, 1e-5);
    y.backward(drawn({1500, 100}, 4).to(type));
    at::set_num_threads(before);
    return std::vector<at::Tensor>{y.detach(), x.grad(), factor.grad(), bias.grad()};
  };
  CHECK(bitwise_equal(outcome(1), outcome(3)));
}

TEST_CASE("layer norm: heads of packed projections need no copy to be normed", "[layer_norm]") {
  const at::Tensor packed = drawn({2, 5, 4 * 8 + 3}, 1, at::kFloat);
  const at::Tensor heads = packed.narrow(-1, 2, 32).unflatten(-1, {4, 8});  // (B, T, H, D)
  CHECK(at::equal(fused_layer_norm(heads, {}, 1e-5), fused_layer_norm(heads.contiguous(), {}, 1e-5)));
  const at::Tensor turned = heads.contiguous().transpose(1, 2);  // (B, H, T, D)
  const at::Tensor y = fused_layer_norm(turned, {}, 1e-5);
  CHECK(at::equal(y, fused_layer_norm(turned.contiguous(), {}, 1e-5)));
  CHECK(y.strides() == turned.strides());
}

}  // namespace kf::test
