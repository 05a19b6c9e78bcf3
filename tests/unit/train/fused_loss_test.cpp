// The head's product and cross entropy in chunks, against all logits at once.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>

#include "core/error.h"
#include "support/tiny.h"
#include "train/step/fused_cross_entropy.h"

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

TEST_CASE("fused loss: value and gradients are those of all logits, for every chunk", "[loss]") {
  const std::int64_t chunk = GENERATE(1, 4, 11, 100);
  const double softcap = GENERATE(0.0, 2.0);
  const double scale = GENERATE(1.0, 0.5);
  const LossFactors factors{1.0 / 9, GENERATE(0.0, 0.01)};
  CAPTURE(chunk, softcap, scale, factors.z);
  Inputs a(at::kDouble), b(at::kDouble);
  const LossTerms fused = fused_cross_entropy(a.hidden, {a.weight, scale, softcap}, a.labels, factors, chunk);
  const LossTerms plain = plain_cross_entropy(b.hidden, {b.weight, scale, softcap}, b.labels, factors);
  torch::autograd::backward({fused.total * 3}, {});
  torch::autograd::backward({plain.total * 3}, {});
  CHECK(fused.total.item<double>() == Approx(plain.total.item<double>()).epsilon(1e-12));
  CHECK(fused.ce.item<double>() == Approx(plain.ce.item<double>()).epsilon(1e-12));
  CHECK(fused.z_loss.item<double>() == Approx(plain.z_loss.item<double>()).margin(1e-12));
  CHECK(relative_difference(a.hidden.grad(), b.hidden.grad()) < 1e-12);
  CHECK(relative_difference(a.weight.grad(), b.weight.grad()) < 1e-12);
}

TEST_CASE("fused loss: its gradients are those of finite differences", "[loss]") {
  const LossFactors factors{1.0 / 9, 0.01};
  Inputs in(at::kDouble);
  const auto value = [&](const at::Tensor& hidden, const at::Tensor& weight) {
    const at::NoGradGuard no_grad;
    return fused_cross_entropy(hidden, {weight, 0.7, 2.0}, in.labels, factors, 4).total.item<double>();
  };
  torch::autograd::backward({fused_cross_entropy(in.hidden, {in.weight, 0.7, 2.0}, in.labels, factors, 4).total}, {});
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

TEST_CASE("fused loss: the head's precision says where 16-bit logits are rounded", "[loss]") {
  using Precision = OutputHead::Precision;
  const auto losses = [](Precision precision, bool fused) {
    Inputs in(at::kBFloat16);
    const OutputHead head{in.weight, 0.5, 2.0, precision};
    const LossTerms parts = fused ? fused_cross_entropy(in.hidden, head, in.labels, {1.0 / 9, 0}, 4)
                                  : plain_cross_entropy(in.hidden, head, in.labels, {1.0 / 9, 0});
    torch::autograd::backward({parts.total}, {});
    return std::tuple(parts.ce.item<double>(), in.hidden.grad().to(at::kDouble), in.weight.grad().to(at::kDouble));
  };
  // The same numbers in double, which the inputs hold exactly.
  Inputs exact(at::kBFloat16);
  const at::Tensor hidden = exact.hidden.detach().to(at::kDouble), weight = exact.weight.detach().to(at::kDouble);
  const double right = plain_cross_entropy(hidden, {weight, 0.5, 2.0}, exact.labels, {1.0 / 9, 0}).ce.item<double>();
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

TEST_CASE("fused loss: a model's logits are of the type that model.logits_dtype says", "[loss]") {
  const auto logits = [](const char* type) {
    config::Config config = tiny_config();
    config.model.logits_dtype = type;
    const auto model = tiny_model(config, 1, at::kBFloat16);
    ForwardContext context;
    const at::NoGradGuard no_grad;
    return model->forward(random_tokens(1, 8, 3), context);
  };
  CHECK(logits("cast").scalar_type() == at::kBFloat16);
  CHECK(logits("compute").scalar_type() == at::kBFloat16);
  const at::Tensor wide = logits("fp32");
  CHECK(wide.scalar_type() == at::kFloat);
  CHECK(relative_difference(wide, logits("cast").to(at::kFloat)) < 0.00390625);  // one rounding of 2^-9, by the norm
}

TEST_CASE("fused loss: a second backward is an error, frozen inputs cost nothing", "[loss]") {
  Inputs in(at::kFloat);
  const at::Tensor total = fused_cross_entropy(in.hidden, {in.weight}, in.labels, {}, 4).total;
  torch::autograd::backward({total}, {}, /*retain_graph=*/true);
  CHECK_THROWS_WITH(torch::autograd::backward({total}, {}), Catch::Contains("made once"));
  Inputs frozen(at::kFloat);
  frozen.weight.set_requires_grad(false);
  torch::autograd::backward({fused_cross_entropy(frozen.hidden, {frozen.weight}, frozen.labels, {}, 4).total}, {});
  CHECK(relative_difference(frozen.hidden.grad(), in.hidden.grad()) < 1e-6);
  CHECK_FALSE(frozen.weight.grad().defined());
}

TEST_CASE("fused loss: a model trains with it as with all logits, fused or plain", "[loss]") {
  const bool tied = GENERATE(true, false);
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  FixedLoader data(random_tokens(8, 32, 3), random_tokens(8, 32, 4), 2);
  const auto train = [&](const std::string& loss, bool fused) {
    config::Config config = tiny_config();
    config.model.tie_embeddings = tied;
    config.model.final_logit_softcap = 5;
    config.model.logit_scale = 2;
    config.train.loss_fn = loss;
    config.train.ce_chunk_size = 7;
    config.train.z_loss_weight = 1e-3;
    config.train.compile_model = fused;
    config.train.grad_accum_steps = 2;
    Bench bench(config, compute);
    StepResult result;
    for (std::int64_t step = 0; step < 3; ++step) {
      result = bench.step(data, step, 1e-3);
    }
    return result;
  };
  const double tolerance = compute == at::kFloat ? 1e-5 : 2e-2;
  const StepResult expected = train("cross_entropy", true);
  for (const bool fused : {true, false}) {
    const StepResult result = train("fused_linear_cross_entropy", fused);
    CHECK(result.ce == Approx(expected.ce).epsilon(tolerance));
    CHECK(result.z_loss == Approx(expected.z_loss).epsilon(tolerance));
    CHECK(result.grad_norm == Approx(expected.grad_norm).epsilon(tolerance));
  }
}

}  // namespace kf::test
