// The head's product and cross entropy in chunks, against all logits at once.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>

#include "data/sequence/packing.h"
#include "kernels/linear_loss/linear_loss.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

constexpr std::int64_t kN = 11, kC = 6, kV = 9;

struct Inputs {
  explicit Inputs(at::ScalarType type) {
    hidden = at::randn({kN, kC}, at::detail::createCPUGenerator(1)).to(type).set_requires_grad(true);
    weight = at::randn({kV, kC}, at::detail::createCPUGenerator(2)).to(type).set_requires_grad(true);
    labels = random_tokens(1, kN, 3, kV)[0];
    labels[2] = kIgnore;
    labels[7] = kIgnore;
  }
  at::Tensor hidden, weight, labels;
};

}  // namespace

TEST_CASE("linear loss: value and gradients are those of all logits, for every chunk", "[loss]") {
  const std::int64_t chunk = GENERATE(1, 4, 11, 100);
  const double softcap = GENERATE(0.0, 2.0);
  const double scale = GENERATE(1.0, 0.5);
  const LinearLossOptions options{1.0 / 9, GENERATE(0.0, 0.01), chunk};
  CAPTURE(chunk, softcap, scale, options.z);
  Inputs a(at::kDouble), b(at::kDouble);
  const LinearLoss fused = fused_linear_loss(a.hidden, {a.weight, scale, softcap}, a.labels, options);
  const LinearLoss plain = plain_linear_loss(b.hidden, {b.weight, scale, softcap}, b.labels, options);
  torch::autograd::backward({fused.total * 3}, {});
  torch::autograd::backward({plain.total * 3}, {});
  CHECK(fused.total.item<double>() == Approx(plain.total.item<double>()).epsilon(1e-12));
  CHECK(fused.ce.item<double>() == Approx(plain.ce.item<double>()).epsilon(1e-12));
  CHECK(fused.z.item<double>() == Approx(plain.z.item<double>()).margin(1e-12));
  CHECK(relative_difference(a.hidden.grad(), b.hidden.grad()) < 1e-12);
  CHECK(relative_difference(a.weight.grad(), b.weight.grad()) < 1e-12);
}

TEST_CASE("linear loss: its gradients are those of finite differences", "[loss]") {
  const LinearLossOptions options{1.0 / 9, 0.01, 4};
  Inputs in(at::kDouble);
  const auto value = [&](const at::Tensor& hidden, const at::Tensor& weight) {
    const at::NoGradGuard no_grad;
    return fused_linear_loss(hidden, {weight, 0.7, 2.0}, in.labels, options).total.item<double>();
  };
  torch::autograd::backward({fused_linear_loss(in.hidden, {in.weight, 0.7, 2.0}, in.labels, options).total}, {});
  constexpr double kStep = 1e-6;
  for (const at::Tensor& input : {in.hidden, in.weight}) {
    const at::Tensor flat = input.detach().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const double middle = flat[i].item<double>();
      flat[i] = middle + kStep;
      const double above = value(in.hidden.detach(), in.weight.detach());
      flat[i] = middle - kStep;
      const double below = value(in.hidden.detach(), in.weight.detach());
      flat[i] = middle;
      CHECK(input.grad().view(-1)[i].item<double>() == Approx((above - below) / (2 * kStep)).margin(1e-8));
    }
  }
}

TEST_CASE("linear loss: the head's precision says where 16-bit logits are rounded", "[loss]") {
  using Precision = OutputHead::Precision;
  const auto losses = [](Precision precision, bool fused) {
    Inputs in(at::kBFloat16);
    const OutputHead head{in.weight, 0.5, 2.0, precision};
    const LinearLoss parts = fused ? fused_linear_loss(in.hidden, head, in.labels, {1.0 / 9, 0, 4})
                                   : plain_linear_loss(in.hidden, head, in.labels, {1.0 / 9, 0});
    torch::autograd::backward({parts.total}, {});
    return std::tuple(parts.ce.item<double>(), in.hidden.grad().to(at::kDouble), in.weight.grad().to(at::kDouble));
  };
  // The same numbers in double, which the inputs hold exactly.
  Inputs exact(at::kBFloat16);
  const at::Tensor hidden = exact.hidden.detach().to(at::kDouble), weight = exact.weight.detach().to(at::kDouble);
  const double right = plain_linear_loss(hidden, {weight, 0.5, 2.0}, exact.labels, {1.0 / 9, 0}).ce.item<double>();
  // cast: the product alone is rounded, to 8 bits: 2^-9 of each logit, which are below 2 behind the cap; two of them a position.
  constexpr double kRounded = 2 * 2 * 0.001953125;
  for (const bool fused : {true, false}) {
    CAPTURE(fused);
    const auto [wide, wide_hidden, wide_weight] = losses(Precision::fp32, fused);
    const auto [cast, cast_hidden, cast_weight] = losses(Precision::cast, fused);
    const auto [low, low_hidden, low_weight] = losses(Precision::compute, fused);
    CHECK(std::abs(wide - right) < 1e-5);
    CHECK(std::abs(cast - right) < kRounded);
    CHECK(std::abs(low - right) < 8 * kRounded);  // product, cap, scale, exponentials and their logarithm are rounded, too
    CHECK(cast != wide);
    CHECK(low != cast);
    // Gradients are rounded to 8 bits in the end in any case: three roundings in a row, or twice as many.
    CHECK(relative_difference(cast_hidden, wide_hidden) < 0.02);
    CHECK(relative_difference(cast_weight, wide_weight) < 0.02);
    CHECK(relative_difference(low_hidden, wide_hidden) < 0.1);
    CHECK(relative_difference(low_weight, wide_weight) < 0.1);
  }
}

TEST_CASE("linear loss: a second backward is an error, frozen inputs cost nothing", "[loss]") {
  Inputs in(at::kFloat);
  const at::Tensor total = fused_linear_loss(in.hidden, {in.weight}, in.labels, {}).total;
  torch::autograd::backward({total}, {}, /*retain_graph=*/true);
  CHECK_THROWS_WITH(torch::autograd::backward({total}, {}), Catch::Contains("made once"));
  Inputs frozen(at::kFloat);
  frozen.weight.set_requires_grad(false);
  torch::autograd::backward({fused_linear_loss(frozen.hidden, {frozen.weight}, frozen.labels, {}).total}, {});
  CHECK(relative_difference(frozen.hidden.grad(), in.hidden.grad()) < 1e-6);
  CHECK_FALSE(frozen.weight.grad().defined());
}

}  // namespace kf::test
