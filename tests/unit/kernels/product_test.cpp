// Matrix products by every kernel, and the choice between them.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/product/choose_products.h"
#include "kernels/product/product.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

/// Sets the process's products back.
struct With {
  explicit With(const Products& chosen) { set_products(chosen); }
  ~With() { set_products({}); }
};

/// A bound on the rounding of sums of K products in fp32, in any order: K u sum |a| |b| (Higham, Accuracy and Stability of Numerical
/// Algorithms, 2002, section 3.1), and one rounding of the result to `type`.
bool within_rounding(const at::Tensor& got, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor exact = x.matmul(y);
  const double fp32 = std::ldexp(1.0, -24), last = got.scalar_type() == at::kBFloat16 ? std::ldexp(1.0, -8) : 0;
  const at::Tensor sums = x.abs().matmul(y.abs()) * (fp32 * static_cast<double>(a.size(-1)) * 1.01);
  const at::Tensor bound = sums + (exact.abs() + sums) * last;
  return ((got.to(at::kDouble) - exact).abs() <= bound).all().item<bool>();
}

}  // namespace

TEST_CASE("products: every kernel gives products and gradients within rounding, also of few rows and odd widths", "[products]") {
  const Products chosen = GENERATE(Products{}, Products{.fp32_onednn = true}, Products{.bf16_widened = true},
                                   Products{.fp32_onednn = true, .fp32_own = true}, Products{true, true, true, true, true, true});
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const auto [rows, in, out] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{256, 128, 96}, {256, 96, 131}, {129, 257, 67}, {7, 640, 512}, {1, 2048, 1100}, {4, 8, 8}}));
  CAPTURE(chosen.fp32_onednn, chosen.bf16_widened, chosen.fp32_small, chosen.fp32_own_tn, chosen.fp32_own, type, rows, in, out);
  at::manual_seed(3);
  const at::Tensor x = at::randn({rows, in}).to(type).requires_grad_(), w = at::randn({out, in}).to(type).requires_grad_();
  const at::Tensor g = at::randn({rows, out}).to(type);
  const With with(chosen);
  const at::Tensor y = kf::linear(x.view({1, rows, in}), w);
  REQUIRE(y.sizes() == at::IntArrayRef({1, rows, out}));
  CHECK(y.scalar_type() == type);
  CHECK(within_rounding(y.detach()[0], x.detach(), w.detach().t()));
  const auto gradients = torch::autograd::grad({y}, {x, w}, {g.view({1, rows, out})});
  CHECK(within_rounding(gradients[0], g, w.detach()));
  CHECK(within_rounding(gradients[1], g.t(), x.detach()));
  CHECK(gradients[1].is_contiguous());
  at::Tensor into = at::empty({out, in}, g.options());
  product_tn_out(into, g, x.detach());
  CHECK(into.equal(gradients[1]));
  into = at::empty({rows, in}, g.options());
  product_nn_out(into, g, w.detach());
  CHECK(into.equal(gradients[0]));
}

TEST_CASE("products: kernels of our own are within rounding for any sizes and strides, and add nothing outside", "[products]") {
  const std::tuple<std::int64_t, std::int64_t, std::int64_t> sizes =
      GENERATE(table<std::int64_t, std::int64_t, std::int64_t>({{1, 1, 1},
                                                                {1, 256, 256},
                                                                {3, 65, 47},
                                                                {4, 300, 16},
                                                                {5, 7, 33},
                                                                {6, 16, 8},
                                                                {11, 31, 15},
                                                                {13, 257, 49},
                                                                {32, 64, 192},
                                                                {33, 600, 65},
                                                                {12, 0, 9}}));
  const std::int64_t m = std::get<0>(sizes), k = std::get<1>(sizes), n = std::get<2>(sizes);  // lambdas capture no bindings
  CAPTURE(m, k, n);
  at::manual_seed(6);
  const With with({.fp32_small = true});
  const auto strided = [](std::int64_t rows, std::int64_t columns) { return at::randn({rows, columns + 5}).narrow(1, 2, columns); };
  const at::Tensor a = strided(m, k), b = strided(k, n);
  const at::Tensor a_turned = strided(k, m).copy_(a.t()), b_turned = strided(n, k).copy_(b.t());
  CHECK(within_rounding(product_nt(a, b_turned), a, b));
  CHECK(within_rounding(product_nn(a, b), a, b));
  CHECK(within_rounding(product_tn(a_turned, b), a, b));
  const auto into = [&](const auto& product) {
    const at::Tensor around = at::full({m, n + 4}, 7.0);
    at::Tensor out = around.narrow(1, 1, n);
    product(out);
    CHECK(within_rounding(out, a, b));
    CHECK(around.narrow(1, 0, 1).eq(7.0).all().item<bool>());
    CHECK(around.narrow(1, n + 1, 3).eq(7.0).all().item<bool>());
  };
  into([&](at::Tensor& out) { product_nt_out(out, a, b_turned); });
  into([&](at::Tensor& out) { product_nn_out(out, a, b); });
  into([&](at::Tensor& out) { product_tn_out(out, a_turned, b); });
}

TEST_CASE("products: kernels of our own give the same bits on one thread and on two", "[products]") {
  at::manual_seed(7);
  const With with({.fp32_small = true, .fp32_own_tn = true, .fp32_own = true});
  const int before = at::get_num_threads();
  const at::Tensor x = at::randn({127, 130}), w = at::randn({124, 130}), g = at::randn({127, 124}), row = at::randn({1, 500});
  const at::Tensor wide = at::randn({4100, 500}), tall = at::randn({300, 257}), large = at::randn({129, 257});
  const auto all = [&](int threads) {
    at::set_num_threads(threads);
    return std::vector<at::Tensor>{product_nt(x, w),      product_nn(g, w),        product_tn(g, x),
                                   product_nt(row, wide), product_nt(tall, large), product_nn(tall, large.t().contiguous()),
                                   product_tn(tall, tall)};
  };
  const std::vector<at::Tensor> one = all(1), two = all(2);
  at::set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].equal(two[i]));
  }
}

TEST_CASE("products: columns of other matrices and types stay with at::mm", "[products]") {
  at::manual_seed(8);
  const With with({.fp32_small = true});
  const at::Tensor x = at::randn({20, 12}), w = at::randn({12, 9});
  CHECK(product_nt(x, w.t()).equal(x.mm(w)));
  const at::Tensor double_x = x.to(at::kDouble), double_w = w.to(at::kDouble);
  CHECK(product_nn(double_x, double_w).equal(double_x.mm(double_w)));
}

TEST_CASE("products: no kernel but at::linear's for small products unless they are chosen, and a bias is added", "[products]") {
  at::manual_seed(4);
  const at::Tensor x = at::randn({8, 16}), w = at::randn({16, 16}), b = at::randn({16});
  const With with({true, true, false});
  CHECK(kf::linear(x, w).equal(at::linear(x, w)));
  CHECK(kf::linear(x, w, b).equal(at::linear(x, w, b)));
  set_products({true, true, true});
  CHECK(kf::linear(x, w).equal(product_nt(x, w)));
  CHECK(kf::linear(x, w, b).equal(product_nt(x, w) + b));
  const at::Tensor wide = at::randn({512, 128}), weight = at::randn({128, 128}), bias = at::randn({128});
  CHECK(kf::linear(wide, weight, bias).equal(kf::linear(wide, weight) + bias));
}

TEST_CASE("products: a gradient of a gradient is at::linear's", "[products]") {
  at::manual_seed(5);
  const at::Tensor x = at::randn({256, 128}).requires_grad_(), w = at::randn({128, 128}).requires_grad_();
  const auto second = [&](const at::Tensor& y) {
    const at::Tensor loss = y.square().mean();
    const at::Tensor first = torch::autograd::grad({loss}, {w}, {}, true, true)[0];
    return torch::autograd::grad({first.square().sum()}, {x, w});
  };
  const auto right = second(at::linear(x, w));
  const With with({true, false, true});
  const auto got = second(kf::linear(x, w));
  for (std::size_t i = 0; i < 2; ++i) {
    // Three products of up to 256 terms behind each other.
    CHECK(at::allclose(got[i], right[i], /*rtol=*/3 * 256 * std::ldexp(1.0, -24), /*atol=*/right[i].abs().max().item<double>() * 1e-5));
  }
}

TEST_CASE("products: the choice is measured for large and for small weights and leaves the process as it was", "[products]") {
  CHECK(choose_products({{16, 16}, {320, 16}}, 32, at::kFloat).reason.starts_with("small by "));
  CHECK(choose_products({{16, 16}, {320, 16}}, 32, at::kBFloat16).reason.starts_with("small "));
  CHECK(choose_products({{512, 512}}, 256, at::kDouble).reason.empty());
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const ProductChoice choice = choose_products({{256, 256}, {512, 256}, {32, 8}}, 256, type);
    INFO(choice.reason);
    // Of bf16 nothing is measured on a processor that has no such products.
    const bool measured = type == at::kFloat || choice.reason.find("no products in bf16") == std::string::npos;
    CHECK((choice.reason.find(" x ") != std::string::npos) == measured);
    CHECK((measured || (choice.products.bf16_widened && choice.products.bf16_small)));
    CHECK((type == at::kBFloat16 || !choice.products.bf16_widened));
    CHECK(products() == Products{});
  }
}

}  // namespace kf::test
