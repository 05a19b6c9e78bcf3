// Rows sorted by expert: against plain indexing, and every own backward against differences.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>

#include "kernels/grouped_linear/grouped_linear.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// (N, k) distinct experts a token; the last expert gets nobody.
at::Tensor assignments(std::int64_t tokens, std::int64_t slots, std::int64_t experts) {
  const at::Tensor scores = at::rand({tokens, experts}, at::detail::createCPUGenerator(7), at::TensorOptions(at::kFloat));
  scores.select(1, experts - 1).fill_(-1);
  return std::get<1>(scores.topk(slots, -1));
}

}  // namespace

TEST_CASE("experts: rows are sorted by expert, tokens keep their order", "[moe]") {
  const at::Tensor experts = at::tensor({2, 0, 0, 1, 2, 1}, at::kLong).view({3, 2});
  const ExpertRows rows(experts, 4);
  CHECK(rows.expert.equal(at::tensor({0, 0, 1, 1, 2, 2}, at::kLong)));
  CHECK(rows.token.equal(at::tensor({0, 1, 1, 2, 0, 2}, at::kLong)));
  CHECK(rows.counts.equal(at::tensor({2, 2, 2, 0}, at::kLong)));
  CHECK(rows.borders() == std::vector<std::int64_t>{0, 2, 4, 6, 6});
  CHECK(rows.ends().equal(at::tensor({2, 4, 6, 6}, at::kInt)));
}

TEST_CASE("experts: gathering and combining equal plain indexing", "[moe]") {
  const at::Tensor experts = assignments(9, 3, 5);
  const ExpertRows rows(experts, 5);
  const at::Tensor x = drawn({9, 4}, 1), weights = drawn({9, 3}, 2);
  const at::Tensor sorted = gather_rows(x, rows);
  CHECK(sorted.equal(x.index_select(0, rows.token)));
  const at::Tensor expected = (x.unsqueeze(1) * weights.unsqueeze(2)).sum(1);
  CHECK(at::allclose(combine_rows(sorted, weights, rows), expected, 0, 1e-12));
  CHECK(per_row(weights, rows).equal(weights.flatten().index_select(0, rows.order).unsqueeze(1)));
}

TEST_CASE("experts: the grouped product equals one product an expert", "[moe]") {
  const bool with_bias = GENERATE(true, false);
  const ExpertRows rows(assignments(9, 2, 5), 5);
  const at::Tensor x = drawn({18, 16}, 1), weight = drawn({5, 8, 16}, 2), bias = with_bias ? drawn({5, 8}, 3) : at::Tensor();
  std::vector<at::Tensor> expected;
  for (std::int64_t r = 0; r < 18; ++r) {
    const std::int64_t e = rows.expert[r].item<std::int64_t>();
    expected.push_back(weight[e].mv(x[r]) + (with_bias ? bias[e] : at::zeros({8}, at::kDouble)));
  }
  const at::Tensor wanted = at::stack(expected);
  CHECK(at::allclose(fused_grouped_linear(x, weight, bias, rows), wanted, 0, 1e-12));
  // bf16 goes through at::_grouped_mm; products of 16 terms rounded to 8 bits.
  const auto low = [](const at::Tensor& t) { return t.defined() ? t.to(at::kBFloat16) : t; };
  CHECK(relative_difference(fused_grouped_linear(low(x), low(weight), low(bias), rows).to(at::kDouble), wanted) < 1e-2);
}

TEST_CASE("experts: bf16 products have the gradients of fp32 ones, and zeros for an expert without rows", "[moe]") {
  const ExpertRows rows(assignments(9, 2, 5), 5);
  const auto gradients = [&](at::ScalarType type) {
    at::Tensor x = drawn({18, 16}, 1).to(type).requires_grad_(), weight = drawn({5, 8, 16}, 2).to(type).requires_grad_(),
               bias = drawn({5, 8}, 3).to(type).requires_grad_();
    (fused_grouped_linear(x, weight, bias, rows) * drawn({18, 8}, 4).to(type)).sum().backward();
    return std::vector<at::Tensor>{x.grad().to(at::kDouble), weight.grad().to(at::kDouble), bias.grad().to(at::kDouble)};
  };
  const auto exact = gradients(at::kDouble), low = gradients(at::kBFloat16);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(relative_difference(low[i], exact[i]) < 2e-2);
  }
  for (const auto& all : {exact, low}) {
    CHECK(all[1][4].eq(0).all().item<bool>());
    CHECK(all[2][4].eq(0).all().item<bool>());
  }
}

TEST_CASE("experts: own gradients equal differences", "[moe]") {
  const ExpertRows rows(assignments(6, 2, 4), 4);
  const at::Tensor x = drawn({6, 3}, 1), y = drawn({12, 3}, 2), weights = drawn({6, 2}, 3), matrix = drawn({4, 5, 3}, 4),
                   bias = drawn({4, 5}, 5);
  constexpr double near = 1e-8;
  CHECK(gradient_error([&](const at::Tensor& t) { return gather_rows(t, rows); }, x) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return per_row(t, rows); }, weights) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return combine_rows(t, weights, rows); }, y) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return combine_rows(y, t, rows); }, weights) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return fused_grouped_linear(t, matrix, bias, rows); }, y) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return fused_grouped_linear(y, t, bias, rows); }, matrix) < near);
  CHECK(gradient_error([&](const at::Tensor& t) { return fused_grouped_linear(y, matrix, t, rows); }, bias) < near);
}

TEST_CASE("experts: a scaled gradient leaves the value alone", "[moe]") {
  at::Tensor x = drawn({3, 2}, 1).requires_grad_();
  const at::Tensor factors = at::tensor({1.0, 2.0, 0.0}, at::kDouble).unsqueeze(1);
  const at::Tensor y = scale_gradient(x, factors);
  CHECK(y.equal(x));
  y.sum().backward();
  CHECK(x.grad().equal(factors.expand({3, 2})));
}

TEST_CASE("experts: no rows at all give empty results and zero gradients", "[moe]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const ExpertRows rows(at::empty({0, 2}, at::kLong), 3);
  at::Tensor weight = drawn({3, 8, 16}, 1).to(type).requires_grad_();
  const at::Tensor y = fused_grouped_linear(gather_rows(at::empty({0, 16}, type), rows), weight, {}, rows);
  CHECK(y.sizes() == at::IntArrayRef({0, 8}));
  combine_rows(y, at::empty({0, 2}), rows).sum().backward();
  CHECK(weight.grad().eq(0).all().item<bool>());
}
