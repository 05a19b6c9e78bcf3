// Cross entropy by rows, in place and beside, against double.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "kernels/linear_loss/linear_loss.h"
#include "kernels/linear_loss/row_loss.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr std::int64_t kRows = 7;

at::Tensor labels_of(std::int64_t vocabulary) {
  at::Tensor labels = random_tokens(1, kRows, 3, vocabulary)[0].contiguous();
  labels[2] = kIgnoredLabel;
  labels[0] = vocabulary - 1;
  return labels;
}

/// The same by double operators, with the gradient for the products.
struct Exact {
  Exact(const at::Tensor& products, const at::Tensor& labels, const RowFactors& f) {
    at::Tensor x = products.to(at::kDouble).requires_grad_();
    const at::Tensor scaled = x * f.scale;
    const at::Tensor logits = f.softcap > 0 ? at::tanh(scaled / f.softcap) * f.softcap : scaled;
    ce = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, kIgnoredLabel) * f.ce;
    z = logits.logsumexp(-1).square().sum() * f.z;
    (ce + z).backward();
    gradient = x.grad();
  }
  at::Tensor ce, z, gradient;
};

}  // namespace

TEST_CASE("row loss: sums and gradients are those of double operators, for every width", "[loss]") {
  const std::int64_t vocabulary = GENERATE(1, 5, 16, 33, 1000);
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const RowFactors factors =
      GENERATE(RowFactors{1, 0, 1, 0}, RowFactors{0.5, 0, 0.2, 0.01}, RowFactors{-2, 0, 1, 0.01}, RowFactors{0.7, 3, 1, 0.1});
  CAPTURE(vocabulary, type, factors.scale, factors.softcap, factors.z);
  const at::Tensor products = (drawn({kRows, vocabulary}, 1) * 4).to(type), labels = labels_of(vocabulary);
  const Exact exact(products, labels, factors);
  at::Tensor beside = at::empty_like(products);
  const RowLoss loss = row_loss(products, labels, factors, beside);
  // Of the loss: some ten roundings of numbers below 60, in kRows rows; the factors make no more of it.
  const double unit = std::ldexp(1.0, -24);
  CHECK(loss.ce.item<double>() == Approx(exact.ce.item<double>()).margin(kRows * 10 * 60 * unit));
  CHECK(loss.z.item<double>() == Approx(exact.z.item<double>()).margin(kRows * 10 * 60 * 60 * unit * factors.z));
  // Of the gradient: an exponent of up to 60 is rounded, then one rounding of the type.
  const double largest = exact.gradient.abs().max().item<double>(), own = type == at::kFloat ? 0 : std::ldexp(1.0, -8);
  CHECK((beside.to(at::kDouble) - exact.gradient).abs().max().item<double>() <= (own + 200 * unit) * (largest + 1));
  const at::Tensor in_place = products.clone();
  row_loss(in_place, labels, factors, in_place);
  CHECK(at::equal(in_place, beside));
  CHECK(at::equal(row_slopes(products, labels, loss.lse, factors), beside));
}

TEST_CASE("row loss: the same bits for one and for two threads; NaN and infinity are not lost", "[loss]") {
  const at::Tensor products = drawn({300, 200}, 1, at::kFloat), labels = random_tokens(1, 300, 3, 200)[0].contiguous();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const RowLoss one = row_loss(products, labels, {1, 0, 1, 1});
  at::set_num_threads(2);
  const RowLoss two = row_loss(products, labels, {1, 0, 1, 1});
  at::set_num_threads(threads);
  CHECK(at::equal(one.ce, two.ce));
  CHECK(at::equal(one.z, two.z));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor spoiled = products.clone();
    spoiled[3][150] = bad;
    at::Tensor slopes = at::empty_like(spoiled);
    CHECK_FALSE(std::isfinite(row_loss(spoiled, labels, {}, slopes).ce.item<double>()));
    CHECK_FALSE(slopes[3].isfinite().all().item<bool>());
    CHECK(slopes[2].isfinite().all().item<bool>());
  }
}

TEST_CASE("row loss: a label outside of the vocabulary is an error that names it", "[loss]") {
  const at::Tensor products = drawn({2, 5}, 1, at::kFloat);
  CHECK_THROWS_WITH(row_loss(products, at::tensor({1, 5}, at::kLong), {}), Catch::Contains("a label is 5; allowed are tokens, 0 to 4"));
  CHECK_THROWS_WITH(row_loss(products, at::tensor({-3, 1}, at::kLong), {}), Catch::Contains("a label is -3"));
}

TEST_CASE("cross entropy: the kernel equals its twin, once and twice differentiated", "[loss]") {
  const at::ScalarType type = GENERATE(at::kDouble, at::kFloat, at::kBFloat16);
  const at::Tensor labels = labels_of(40);
  const auto outcome = [&](at::Tensor (*loss)(const at::Tensor&, const at::Tensor&)) {
    at::Tensor x = drawn({kRows, 40}, 1).to(type).requires_grad_();
    (loss(x, labels) * 3).backward();
    at::Tensor y = drawn({kRows, 40}, 1).to(type).requires_grad_();
    const at::Tensor gradient = torch::autograd::grad({loss(y, labels)}, {y}, {}, true, /*create_graph=*/true)[0];
    gradient.to(at::kFloat).square().sum().backward();
    return std::vector<at::Tensor>{x.grad(), y.grad()};
  };
  const std::vector<at::Tensor> fused = outcome(fused_cross_entropy), plain = outcome(plain_cross_entropy);
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CHECK(fused[i].scalar_type() == type);
    CHECK(relative_difference(fused[i], plain[i]) < (type == at::kBFloat16 ? 1e-2 : 1e-5));
  }
}

}  // namespace kf::test
