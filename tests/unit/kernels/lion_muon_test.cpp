// Updates of Lion and Muon in one pass, against their plain twins.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/lion/lion.h"
#include "kernels/muon/muon.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr double kRound = 0x1p-24;   // of fp32: half a unit in the last place
constexpr double kBfRound = 0x1p-7;  // of bf16: numbers beside a border may fall on either side of it, a unit apart

const std::vector<std::int64_t>& sizes() {  // at and beside the borders of vectors, blocks and shares of threads
  static const std::vector<std::int64_t> all{1, 15, 16, 255, 256, 257, 4097, 70001};
  return all;
}

struct Weights {
  Weights(at::ScalarType weight, at::ScalarType gradient) {
    std::uint64_t seed = 1;
    for (const std::int64_t n : sizes()) {
      weights.push_back(drawn({n}, seed++, at::kFloat).to(weight));
      gradients.push_back((drawn({n}, seed++, at::kFloat) * 1e-2).to(gradient));
      m.push_back(drawn({n}, seed++, at::kFloat) * 1e-2);
      values.push_back(weight == at::kFloat ? at::zeros({n}, at::kBFloat16) : at::Tensor());
    }
  }
  LionLists lists(const at::Tensor& factor = {}) const { return {weights, gradients, m, values, factor}; }

  std::vector<at::Tensor> weights, gradients, m, values;
};

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) {
    out.push_back(tensor.clone());
  }
  return out;
}

double last_rounding(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? kBfRound : 0; }

void check_near(const at::Tensor& found, const at::Tensor& expected, const at::Tensor& bound) {
  const at::Tensor exact = expected.to(at::kDouble), most = bound + last_rounding(found) * (exact.abs() + bound);
  CHECK(((found.to(at::kDouble) - exact).abs() <= most).all().item<bool>());
}

/// body() with one thread and with three gives the same bits.
template <class Body>
void check_threads(const Body& body) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<at::Tensor> one = body();
  at::set_num_threads(3);
  const std::vector<at::Tensor> three = body();
  at::set_num_threads(before);
  CHECK(bitwise_equal(one, three));
}

}  // namespace

TEST_CASE("lion: one pass equals the plain twin, with clipping, decay and the 16-bit copies in it", "[lion]") {
  const at::ScalarType weight = GENERATE(at::kFloat, at::kBFloat16), gradient = GENERATE(at::kFloat, at::kBFloat16);
  CAPTURE(weight, gradient);
  const LionNumbers numbers{1e-2, 0.1, 0.9, 0.97};
  const Weights fused(weight, gradient), plain(weight, gradient);
  const std::vector<at::Tensor> before = clones(fused.m);
  const at::Tensor factor = at::full({}, 0.37);
  fused_lion(fused.lists(factor), numbers);
  plain_lion(plain.lists(factor), numbers);
  for (std::size_t i = 0; i < fused.weights.size(); ++i) {
    CAPTURE(i);
    const at::Tensor g = fused.gradients[i].to(at::kDouble) * 0.37, m = before[i].to(at::kDouble), w = plain.weights[i].to(at::kDouble);
    // The sign is of a sum of two products; where they cancel but for their roundings (g times its factor, either product, beta in fp32,
    // and the sum) it may be any of three.
    const at::Tensor ahead = (0.9 * m).abs() + (0.1 * g).abs();
    const at::Tensor unsure = (0.9 * m + 0.1 * g).abs() <= 8 * kRound * ahead;
    check_near(fused.weights[i], plain.weights[i], 4 * kRound * (w.abs() + numbers.lr) + unsure * (2 * numbers.lr));
    CHECK(unsure.sum().item<std::int64_t>() <= 2);
    check_near(fused.m[i], plain.m[i], 8 * kRound * (m.abs() + g.abs()));
    if (fused.values[i].defined()) {
      CHECK(at::equal(fused.values[i], fused.weights[i].to(at::kBFloat16)));
      CHECK(at::equal(plain.values[i], plain.weights[i].to(at::kBFloat16)));
    }
  }
}

TEST_CASE("lion: what is no number has no direction, and is seen in the moment", "[lion]") {
  const auto lion = GENERATE(fused_lion, plain_lion);
  const Weights weights(at::kFloat, at::kFloat);
  weights.gradients.back()[5] = std::numeric_limits<float>::quiet_NaN();
  lion(weights.lists(), {1e-2, 0});
  CHECK_FALSE(weights.weights.back().isnan().any().item<bool>());
  CHECK(weights.m.back().isnan().sum().item<std::int64_t>() == 1);
}

TEST_CASE("lion: the same bits for any number of threads", "[lion]") {
  check_threads([] {
    const Weights weights(at::kFloat, at::kBFloat16);
    fused_lion(weights.lists(at::full({}, 0.5)), {1e-2, 0.1});
    std::vector<at::Tensor> all = weights.weights;
    all.insert(all.end(), weights.m.begin(), weights.m.end());
    return all;
  });
}

TEST_CASE("muon: momentum in one pass equals the plain twin", "[muon]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const bool nesterov = GENERATE(true, false), clipped = GENERATE(true, false);
  CAPTURE(type, nesterov, clipped);
  for (const std::int64_t n : sizes()) {
    const at::Tensor gradient = drawn({n, 3}, 1).to(type), before = drawn({n, 3}, 2, at::kFloat);
    const at::Tensor factor = clipped ? at::full({}, 0.37) : at::Tensor();
    const at::Tensor m = before.clone(), plain_m = before.clone();
    const at::Tensor ahead = fused_muon_momentum({gradient, m, factor, 0.95, nesterov});
    const at::Tensor plain = plain_muon_momentum({gradient, plain_m, factor, 0.95, nesterov});
    // Four roundings, of which none is of more than twice the sizes' sum.
    const at::Tensor bound = 8 * kRound * (gradient.to(at::kDouble).abs() + before.to(at::kDouble).abs());
    check_near(m, plain_m, bound);
    check_near(ahead, plain, 2 * bound);
    CHECK(ahead.is_same(m) == !nesterov);
  }
}

TEST_CASE("muon: a move in one pass equals the plain twin, whatever lies where", "[muon]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const bool turned = GENERATE(false, true), with_value = GENERATE(false, true);
  CAPTURE(type, turned, with_value);
  for (const std::int64_t n : sizes()) {
    const at::Tensor weight = drawn({n, 3}, 1).to(type), plain = weight.clone();
    const at::Tensor direction = turned ? drawn({3, n}, 2, at::kFloat).t() : drawn({n, 3}, 2, at::kFloat);
    const auto value = [&] { return with_value ? at::zeros({n, 3}, at::kBFloat16) : at::Tensor(); };
    const at::Tensor follows = value(), plain_follows = value();
    fused_muon_move({weight, direction, follows, 0.99, 0.02});
    plain_muon_move({plain, direction, plain_follows, 0.99, 0.02});
    check_near(weight, plain, 4 * kRound * (plain.to(at::kDouble).abs() + 0.02 * direction.to(at::kDouble).abs()));
    if (with_value) {
      CHECK(at::equal(follows, weight.to(at::kBFloat16)));
      CHECK(at::equal(plain_follows, plain.to(at::kBFloat16)));
    }
  }
}

TEST_CASE("muon: the same bits for any number of threads", "[muon]") {
  check_threads([] {
    const at::Tensor gradient = drawn({300, 301}, 1, at::kFloat), m = drawn({300, 301}, 2, at::kFloat),
                     weight = drawn({300, 301}, 3, at::kFloat);
    const at::Tensor ahead = fused_muon_momentum({gradient, m, at::full({}, 0.3), 0.95, true});
    fused_muon_move({weight, ahead, {}, 0.99, 0.02});
    return std::vector<at::Tensor>{m, ahead, weight};
  });
}

}  // namespace kf::test
