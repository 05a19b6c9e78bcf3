// Draws by element: known answers, statistics within derived bounds, and parts that are parts of the whole to the bit.

#include "model/draw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "core/error.h"
#include "model/first_values.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;

namespace {

constexpr std::uint64_t kKey = 0x299f31d0a4093822;
constexpr double kStd = 0.02;
constexpr double kWidened = kStd / 0.87962566103423978;

using Fill = void (*)(const at::Tensor&, const Shape&, const Range&, std::uint64_t, double);

at::Tensor drawn(Fill fill, const Shape& whole, const Range& range, std::uint64_t key = kKey) {
  at::Tensor part = at::empty(range.size, at::kFloat);
  fill(part, whole, range, key, kStd);
  return part;
}

at::Tensor all_drawn(Fill fill, const Shape& whole, std::uint64_t key = kKey) { return drawn(fill, whole, Range::whole(whole), key); }

/// The standard normal distribution.
double below(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

/// Whether as many of n draws as each with probability p: five standard deviations of the binomial distribution.
bool as_many(const at::Tensor& which, double p) {
  const auto n = static_cast<double>(which.numel());
  return std::abs(which.sum().item<double>() - n * p) <= 5 * std::sqrt(n * p * (1 - p));
}

/// Mean, deviation and neighbours of n draws; 5 standard errors, where the fourth moment is at most the normal's: 1 / sqrt(n), 1 / sqrt(2
/// n).
void check_moments(const at::Tensor& z) {
  const auto n = static_cast<double>(z.numel());
  CHECK(std::abs(z.mean().item<double>()) <= 5 / std::sqrt(n));
  CHECK(std::abs(z.square().mean().sqrt().item<double>() - 1) <= 5 / std::sqrt(2 * n));
  for (const std::int64_t lag : {1, 2, 3, 4, 1024}) {
    const std::int64_t pairs = z.numel() - lag;
    CAPTURE(lag);
    CHECK(std::abs((z.narrow(0, 0, pairs) * z.narrow(0, lag, pairs)).mean().item<double>()) <= 5 / std::sqrt(static_cast<double>(pairs)));
  }
}

}  // namespace

// Random123 1.14, kat_vectors: philox4x32 with 10 rounds.
TEST_CASE("draw: philox gives the known answers of its authors", "[draw]") {
  CHECK(philox({0, 0, 0, 0}, 0) == PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, kKey) == PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// A relative error e of z moves p by e |z| pdf(z), and pdf(z) / p < z + 1 / z: by less than (z^2 + 1) e of it. AS 241 promises 1e-16, and
// fifteen roundings of each polynomial add as many halves of 2.2e-16 at worst: e = 16 x 2.2e-16 with those of erfc.
TEST_CASE("draw: the deviate is the inverse of the distribution, to the last 32-bit number on both sides", "[draw]") {
  CHECK(normal_deviate(0.25 - 0.5) == Approx(-0.674489750196081743).epsilon(1e-15));
  CHECK(normal_deviate(0.001 - 0.5) == Approx(-3.09023230616781354).epsilon(1e-13));  // 0.001 - 0.5 rounds 0.001 by 3e-14 of it
  for (double p = 0x1p-33; p < 0.5; p = p * 1.03 + 0x1p-33) {
    const double q = p - 0.5, z = normal_deviate(q);
    CAPTURE(p);
    CHECK(std::abs(below(z) - (q + 0.5)) <= (q + 0.5) * (z * z + 1) * 16 * 2.2e-16);
    CHECK(normal_deviate(-q) == -z);
  }
}

// By an independent program: Philox in Python's integers, NormalDist().inv_cdf of Python's library, one rounding to fp32.
TEST_CASE("draw: elements have the values of an independent program, far from the beginning, too", "[draw]") {
  const at::Tensor normal = all_drawn(fill_normal, {6});
  const float expected[] = {-0x1.035c88p-5F, 0x1.30e824p-7F, -0x1.f7875cp-8F, -0x1.925de8p-9F, 0x1.41a22p-5F, 0x1.0dd474p-7F};
  const float cut[] = {-0x1.09ae0cp-5F, 0x1.49c27p-7F, -0x1.1094fcp-7F, -0x1.b476ap-9F, 0x1.38fedp-5F, 0x1.240a76p-7F};
  const at::Tensor truncated = all_drawn(fill_truncated, {6});
  for (std::int64_t i = 0; i < 6; ++i) {
    CHECK(normal[i].item<float>() == expected[i]);
    CHECK(truncated[i].item<float>() == cut[i]);
  }
  const std::int64_t far = std::int64_t{1} << 40;
  CHECK(drawn(fill_normal, {2 * far}, {{far + 1}, {1}}).item<float>() == 0x1.682c98p-5F);
  CHECK(drawn(fill_truncated, {2 * far}, {{far + 6}, {1}}).item<float>() == 0x1.45ddc4p-5F);
}

TEST_CASE("draw: a million draws have the moments and the tails of a normal", "[draw]") {
  const at::Tensor z = all_drawn(fill_normal, {1 << 20}).to(at::kDouble) / kStd;
  check_moments(z);
  for (const double edge : {-4.0, -3.0, -2.0, -1.0, -0.3, 0.0, 0.5, 1.4395, 2.5, 3.5}) {  // 1.4395: where the branches meet
    CAPTURE(edge);
    CHECK(as_many(z < edge, below(edge)));
  }
  CHECK(z.abs().max().item<double>() < 6.34);
}

TEST_CASE("draw: a cut normal has the deviation that is asked for and nothing beyond two of the wider one", "[draw]") {
  const at::Tensor values = all_drawn(fill_truncated, {1 << 20}).to(at::kDouble);
  check_moments(values / kStd);
  const at::Tensor z = values / kWidened;
  CHECK(z.abs().max().item<double>() <= 2 * (1 + 0x1p-24));  // rounded to fp32
  for (const double edge : {-1.9, -1.5, -1.0, 0.0, 0.7, 1.8}) {
    CAPTURE(edge);
    CHECK(as_many(z < edge, (below(edge) - below(-2)) / (below(2) - below(-2))));
  }
}

TEST_CASE("draw: other keys draw other numbers", "[draw]") {
  const at::Tensor a = all_drawn(fill_normal, {1 << 16}, 1), b = all_drawn(fill_normal, {1 << 16}, std::uint64_t{1} << 32);
  CHECK(std::abs((a * b).mean().item<double>()) <= 5 * kStd * kStd / 256);
  CHECK_FALSE(a.equal(b));
}

TEST_CASE("draw: a part is that part of the whole, to the bit", "[draw]") {
  const Fill fill = GENERATE(as<Fill>{}, fill_normal, fill_truncated);
  const auto agrees = [&](const Shape& whole, const Range& range) {
    CAPTURE(whole, range.begin, range.size);
    CHECK(drawn(fill, whole, range).equal(range.of(all_drawn(fill, whole)).contiguous()));
  };
  agrees({}, {{}, {}});
  agrees({5000}, {{1}, {4998}});
  agrees({5000}, {{1023}, {2}});
  agrees({300, 7}, {{11, 0}, {200, 7}});
  agrees({300, 7}, {{0, 3}, {300, 2}});
  agrees({40, 1500}, {{3, 2}, {30, 1301}});
  agrees({6, 33, 65}, {{2, 1, 0}, {3, 30, 65}});
  agrees({6, 33, 65}, {{0, 5, 7}, {6, 1, 50}});
  agrees({3, 5, 4, 6}, {{1, 2, 0, 0}, {2, 3, 4, 6}});
  agrees({10, 4}, {{3, 0}, {0, 4}});
}

TEST_CASE("draw: threads make no difference", "[draw]") {
  const int before = at::get_num_threads();
  const Range range{{3, 1}, {300, 999}};  // 65536 elements or more a thread
  at::set_num_threads(1);
  const at::Tensor alone = drawn(fill_normal, {400, 1000}, range);
  at::set_num_threads(5);
  const at::Tensor together = drawn(fill_normal, {400, 1000}, range);
  at::set_num_threads(before);
  CHECK(alone.equal(together));
}

TEST_CASE("draw: what cannot be drawn into is refused", "[draw]") {
  CHECK_THROWS_AS(fill_normal(at::empty({4}, at::kDouble), {4}, Range::whole({4}), 1, 1), Error);
  CHECK_THROWS_AS(fill_normal(at::empty({4, 4}).t(), {4, 4}, Range::whole({4, 4}), 1, 1), Error);
  CHECK_THROWS_AS(fill_normal(at::empty({4}), {4}, {{0}, {3}}, 1, 1), Error);
}

TEST_CASE("init: every rule fills a part as it fills the whole, and an expert's values are those of its own name", "[init]") {
  Parameter weight;
  weight.name = "layers.0.mlp.gate_w";
  weight.shape = {4, 6, 10};
  const Range range{{1, 2, 0}, {2, 3, 10}};
  const auto agrees = [&](const Init& init) {
    weight.init = init;
    CHECK(first_values(weight, 1, range).equal(range.of(first_values(weight, 1, Range::whole(weight.shape)))));
  };
  agrees(Init::ones());
  agrees(Init::zeros());
  agrees(Init::constant(0.5));
  agrees(Init::given(at::arange(240, at::kFloat).view({4, 6, 10})));
  agrees(Init::normal(kStd));
  weight.stack = StackNames{"gate_w", "experts.{}.gate_proj.weight", true};
  agrees(Init::truncated(kStd));
  agrees(Init::normal(kStd));
  Parameter expert;
  expert.name = "layers.0.mlp.experts.2.gate_proj.weight";
  expert.shape = {6, 10};
  expert.init = weight.init;
  CHECK(first_values(weight, 1, Range::whole(weight.shape))[2].equal(first_values(expert, 1, Range::whole(expert.shape))));
  weight.stack->write_packed = false;
  agrees(Init::normal(kStd));
  CHECK(first_values(weight, 1, Range::whole(weight.shape))[2].equal(first_values(expert, 1, Range::whole(expert.shape))));
}
