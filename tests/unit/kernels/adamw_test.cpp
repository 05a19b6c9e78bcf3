// AdamW in one pass over all weights, and moments in 8 bits.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/adamw/adamw.h"
#include "kernels/adamw/blockwise.h"
#include "kernels/adamw/byte_map.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

/// Weights of sizes at and beside the borders of vectors, blocks and shares of threads.
struct Weights {
  Weights(at::ScalarType weight, at::ScalarType gradient, at::ScalarType m, at::ScalarType v) {
    std::uint64_t seed = 1;
    for (const std::int64_t n : {1, 15, 16, 255, 256, 257, 4097, 70001}) {
      weights.push_back(drawn({n}, seed++, at::kFloat).to(weight));
      gradients.push_back((drawn({n}, seed++, at::kFloat) * 1e-2).to(gradient));
      moments_m.push_back(stored(drawn({n}, seed++, at::kFloat) * 1e-2, m));
      moments_v.push_back(stored(drawn({n}, seed++, at::kFloat).square() * 1e-4 + 1e-6, v));
      steps.push_back(at::full({}, static_cast<double>(1 + seed % 5)));
      values.push_back(weight == at::kFloat ? at::zeros({n}, at::kBFloat16) : at::Tensor());
    }
  }

  static at::Tensor stored(const at::Tensor& numbers, at::ScalarType type) {
    if (!is_blockwise(type)) {
      return numbers.to(type);
    }
    at::Tensor out = at::zeros({blockwise_bytes(numbers.numel())}, type);
    to_blockwise(numbers, out);
    return out;
  }

  static at::Tensor wide(const at::Tensor& tensor, const at::Tensor& like) {
    return is_blockwise(tensor.scalar_type()) ? from_blockwise(tensor, like.sizes()) : tensor.to(at::kFloat);
  }

  AdamWLists lists(const at::Tensor& factor = {}, const at::Tensor& ok = {}) const {
    return {weights, gradients, moments_m, moments_v, steps, values, factor, ok};
  }

  /// What an update moves.
  std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> out;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      out.insert(out.end(), {weights[i], wide(moments_m[i], weights[i]), wide(moments_v[i], weights[i])});
    }
    return out;
  }

  std::vector<at::Tensor> weights, gradients, moments_m, moments_v, steps, values;
};

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) {
    out.push_back(tensor.clone());
  }
  return out;
}

double unit_of(at::ScalarType type) { return type == at::kBFloat16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -24); }

}  // namespace

TEST_CASE("adamw: one pass equals the plain twin for every storage, with clipping, decay and the 16-bit copies in it", "[adamw]") {
  const auto low = [](bool is_low) { return is_low ? at::kBFloat16 : at::kFloat; };
  const at::ScalarType weight = low(GENERATE(false, true)), gradient = low(GENERATE(false, true));
  const at::ScalarType m = low(GENERATE(false, true)), v = low(GENERATE(false, true));
  AdamWNumbers numbers{1e-2, 0.1, 0.9, 0.95, 1e-8, 0, false};
  SECTION("as it is") {}
  SECTION("eps under the root") { numbers.eps_root = 1e-5; }
  SECTION("a step ahead") { numbers.nesterov = true; }
  CAPTURE(weight, gradient, m, v);
  const Weights fused(weight, gradient, m, v), plain(weight, gradient, m, v);
  const at::Tensor factor = at::full({}, 0.37);
  fused_adamw(fused.lists(factor), numbers);
  plain_adamw(plain.lists(factor), numbers);
  const std::vector<at::Tensor> a = fused.all(), b = plain.all();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double unit = unit_of(i % 3 == 0 ? weight : i % 3 == 1 ? m : v);
    // Ten roundings of fp32 numbers on the way, of which none is larger than the weights (below 8) and twice the largest update (below
    // 20 lr); then one of the type, which may fall on either side.
    const at::Tensor bound = 20 * unit_of(at::kFloat) * (b[i].abs().to(at::kDouble) + 20 * numbers.lr) +
                             (unit > 1e-6 ? 2 * unit : 0) * b[i].abs().to(at::kDouble);
    CAPTURE(i);
    CHECK(((a[i].to(at::kDouble) - b[i].to(at::kDouble)).abs() <= bound).all().item<bool>());
  }
  for (std::size_t i = 0; i < fused.values.size(); ++i) {
    if (fused.values[i].defined()) {
      CHECK(at::equal(fused.values[i], fused.weights[i].to(at::kBFloat16)));
    }
  }
}

TEST_CASE("adamw: an update that is not to be made moves nothing, whatever the gradients hold", "[adamw]") {
  const Weights weights(at::kFloat, at::kFloat, at::kFloat, at::kBFloat16);
  weights.gradients.front().fill_(std::numeric_limits<float>::quiet_NaN());
  const std::vector<at::Tensor> before = clones(weights.all()),
                                values = clones(Weights(at::kFloat, at::kFloat, at::kFloat, at::kFloat).values);
  fused_adamw(weights.lists({}, at::zeros({})), {1e-2, 0.1});
  CHECK(bitwise_equal(weights.all(), before));
  CHECK(bitwise_equal(weights.values, values));
}

TEST_CASE("adamw: the same bits for one and for two threads", "[adamw]") {
  const at::ScalarType m = GENERATE(at::kFloat, at::kChar, at::kFloat8_e4m3fn);
  const at::ScalarType v = m == at::kFloat ? at::kFloat : m == at::kChar ? at::kByte : at::kFloat8_e5m2;
  const int threads = at::get_num_threads();
  const auto moved = [&](int count) {
    at::set_num_threads(count);
    const Weights weights(at::kFloat, at::kBFloat16, m, v);
    fused_adamw(weights.lists(at::full({}, 0.5)), {1e-2, 0.1});
    return weights.all();
  };
  const std::vector<at::Tensor> one = moved(1), two = moved(2);
  at::set_num_threads(threads);
  CHECK(bitwise_equal(one, two));
}

TEST_CASE("adamw: the map of 8 bits is bitsandbytes' create_dynamic_map", "[adamw]") {
  const ByteMap &with = byte_map(true), &without = byte_map(false);
  // Its table begins and ends like this: -0.9930, -0.9789, ..., -5.5e-07, 0, 5.5e-07, ..., 0.9930, 1.
  CHECK(with.values[0] == Approx(-0.99296875));
  CHECK(with.values[1] == Approx(-0.97890625));
  CHECK(with.values[126] == Approx(-5.5e-7));
  CHECK(with.values[127] == 0);
  CHECK(with.values[128] == Approx(5.5e-7));
  CHECK(with.values[129] == Approx(3.25e-6));
  CHECK(with.values[254] == Approx(0.99296875));
  CHECK(with.values[255] == 1);
  CHECK(without.values[0] == 0);
  CHECK(without.values[1] == Approx(3.25e-7));
  CHECK(without.values[2] == Approx(7.75e-7));
  CHECK(without.values[3] == Approx(2.125e-6));
  CHECK(without.values[254] == Approx(0.996484375));
  CHECK(without.values[255] == 1);
  for (int i = 0; i < 255; ++i) {
    CHECK(with.values[i] < with.values[i + 1]);
    CHECK(without.values[i] < without.values[i + 1]);
  }
}

TEST_CASE("adamw: 8 bits hold each number as the nearest of the map, and come back as the same bytes", "[adamw]") {
  const at::ScalarType type = GENERATE(at::kChar, at::kByte);
  const std::int64_t n = GENERATE(1, 256, 1000);
  const ByteMap& map = byte_map(type == at::kChar);
  CAPTURE(type, n);
  at::Tensor x = drawn({n}, 3, at::kFloat) * at::exp(4 * drawn({n}, 4, at::kFloat));  // over many decades
  x = type == at::kChar ? x : x.abs();
  at::Tensor bytes = at::zeros({blockwise_bytes(n)}, type);
  to_blockwise(x, bytes);
  const at::Tensor back = from_blockwise(bytes, x.sizes());
  const at::Tensor values = at::tensor(std::vector<float>(map.values, map.values + 256));
  for (std::int64_t first = 0; first < n; first += kByteBlock) {
    const std::int64_t count = std::min(kByteBlock, n - first);
    const at::Tensor some = x.narrow(0, first, count);
    const at::Tensor largest = some[some.abs().argmax().item<std::int64_t>()];
    const at::Tensor nearest = (some.unsqueeze(1) - values * largest).abs().amin(1);
    const at::Tensor off = (some - back.narrow(0, first, count)).abs();
    const at::Tensor lifted = type == at::kByte ? (map.values[1] * largest).abs() : at::zeros({});  // 0 is for 0 alone
    CHECK((off <= at::max(nearest, lifted) * 1.00001).all().item<bool>());
    CHECK(back[first + some.abs().argmax().item<std::int64_t>()].item<float>() == largest.item<float>());
  }
  CHECK((back.eq(0).logical_and(x.ne(0)).any().item<bool>() && type == at::kByte) == false);
  at::Tensor again = at::zeros_like(bytes);
  to_blockwise(back, again);
  CHECK(at::equal(again, bytes));
}

TEST_CASE("adamw: floats of 8 bits hold each number as the nearest there is, and come back as the same numbers", "[adamw]") {
  const at::ScalarType type = GENERATE(at::kFloat8_e4m3fn, at::kFloat8_e5m2);
  const std::int64_t n = GENERATE(1, 256, 1000);
  const bool has_sign = type == at::kFloat8_e4m3fn;
  CAPTURE(type, n);
  at::Tensor x = drawn({n}, 3, at::kFloat) * at::exp(4 * drawn({n}, 4, at::kFloat));  // over many decades
  x = has_sign ? x : x.square();
  at::Tensor bytes = at::zeros({blockwise_bytes(n)}, type);
  to_blockwise(x, bytes);
  const at::Tensor back = from_blockwise(bytes, x.sizes());
  at::Tensor values = at::arange(256, at::kByte).view(type).to(at::kFloat) / (has_sign ? kTopE4m3 : kTopE5m2);
  values = values.masked_select(values.abs() <= 1);  // neither infinities and NaN, nor what lies above a block's largest
  values = has_sign ? values : values.masked_select(values >= 0);
  for (std::int64_t first = 0; first < n; first += kByteBlock) {
    const at::Tensor some = x.narrow(0, first, std::min(kByteBlock, n - first));
    const at::Tensor largest = some[some.abs().argmax().item<std::int64_t>()];
    const at::Tensor nearest = (some.unsqueeze(1) - values * largest).abs().amin(1);
    const at::Tensor off = (some - back.narrow(0, first, some.numel())).abs();
    const at::Tensor lifted = has_sign ? at::zeros({}) : 0x1p-31 * largest;  // 0 is for 0 alone
    CHECK((off <= at::max(nearest, lifted) * 1.00001 + 0x1p-24 * some.abs()).all().item<bool>());
    CHECK(back[first + some.abs().argmax().item<std::int64_t>()].item<float>() == largest.item<float>());
  }
  CHECK((!has_sign && back.eq(0).logical_and(x.ne(0)).any().item<bool>()) == false);
  const at::Tensor again = at::zeros_like(bytes);
  to_blockwise(back, again);
  CHECK(at::equal(from_blockwise(again, x.sizes()), back));
}

TEST_CASE("adamw: the pass over all weights reads and writes 8 bits as the plain twin does, every code of them", "[adamw]") {
  const auto [m, v] = GENERATE(table<at::ScalarType, at::ScalarType>({{at::kChar, at::kByte}, {at::kFloat8_e4m3fn, at::kFloat8_e5m2}}));
  CAPTURE(m, v);
  SECTION("moments that do not move stay the same numbers") {
    const Weights weights(at::kFloat, at::kFloat, m, v);
    const std::vector<at::Tensor> before = clones(weights.all());
    fused_adamw(weights.lists(), {0, 0, 1, 1});
    const std::vector<at::Tensor> after = weights.all();
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK((i % 3 == 0 || at::equal(after[i], before[i])));  // the weights: 0 / 0
    }
  }
  SECTION("floats are rounded alike, over their whole range and below it") {
    if (m == at::kChar) {
      return;  // the map by its formula may miss the table's last bits
    }
    constexpr std::int64_t kNumbers = 60000;
    const at::Tensor g =
        drawn({kNumbers}, 8, at::kFloat) * at::exp2(at::linspace(-40, 1, kNumbers)).index_select(0, at::randperm(kNumbers));
    const std::vector<at::Tensor> weight{at::zeros({kNumbers})}, gradient{g}, step{at::ones({})};
    const std::vector<at::Tensor> own_m{at::zeros({blockwise_bytes(kNumbers)}, m)}, own_v{at::zeros({blockwise_bytes(kNumbers)}, v)};
    fused_adamw({weight, gradient, own_m, own_v, step}, {1e-3, 0, 0, 0});  // the moments become g and its square
    const at::Tensor wanted_m = at::zeros_like(own_m[0]), wanted_v = at::zeros_like(own_v[0]);
    to_blockwise(g, wanted_m);
    to_blockwise(g * g, wanted_v);
    CHECK(at::equal(own_m[0].view(at::kByte), wanted_m.view(at::kByte)));
    CHECK(at::equal(own_v[0].view(at::kByte), wanted_v.view(at::kByte)));
  }
}

TEST_CASE("adamw: moments in 8 bits are those of the plain twin", "[adamw]") {
  const Weights fused(at::kFloat, at::kFloat, at::kChar, at::kByte), plain(at::kFloat, at::kFloat, at::kChar, at::kByte);
  for (int step = 0; step < 3; ++step) {
    fused_adamw(fused.lists(), {1e-2, 0.1});
    plain_adamw(plain.lists(), {1e-2, 0.1});
  }
  const std::vector<at::Tensor> a = fused.all(), b = plain.all();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    // A number between two of the map may fall to either, for its last bits: then by a step of the map, 0.015 of the block's largest.
    const double most = i % 3 == 0 ? 3e-2 * 0.1 : 0.015;
    CHECK((a[i] - b[i]).abs().max().item<double>() <= most * b[i].abs().max().item<double>() + 1e-6);
    CHECK((a[i] - b[i]).abs().mean().item<double>() <= 1e-4 * b[i].abs().max().item<double>() + 1e-6);
  }
}

TEST_CASE("adamw: what is not finite stays so in 8 bits, and zeros stay zeros", "[adamw]") {
  Weights weights(at::kFloat, at::kFloat, at::kChar, at::kByte);
  weights.gradients.back().fill_(0);
  weights.gradients.back()[5] = std::numeric_limits<float>::quiet_NaN();
  weights.moments_m.back().zero_();
  weights.moments_v.back().zero_();
  fused_adamw(weights.lists(), {1e-2, 0});
  const at::Tensor m = from_blockwise(weights.moments_m.back(), weights.weights.back().sizes());
  CHECK(std::isnan(m[5].item<float>()));
  CHECK(m.narrow(0, kByteBlock, m.numel() - kByteBlock).eq(0).all().item<bool>());
  CHECK(weights.weights.back().isnan().sum().item<std::int64_t>() == 1);
}

}  // namespace kf::test
