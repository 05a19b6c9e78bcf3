#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "generate/sampling.h"

using namespace kf;

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) {
    out.push_back(static_cast<float>(std::log(p)));
  }
  return out;
}

const std::vector<float> kLogits = logs({0.5, 0.25, 0.15, 0.1});

/// Which ids a thousand evenly spread draws take, with their shares.
std::map<std::int64_t, double> shares(const std::vector<float>& logits, const GenerateOptions& options) {
  std::map<std::int64_t, double> out;
  for (int i = 0; i < 1000; ++i) {
    out[choose(logits, options, (i + 0.5) / 1000)] += 0.001;
  }
  return out;
}

std::set<std::int64_t> drawn(const std::vector<float>& logits, const GenerateOptions& options) {
  std::set<std::int64_t> out;
  for (const auto& [id, share] : shares(logits, options)) {
    out.insert(id);
  }
  return out;
}

GenerateOptions with(double temperature, std::int64_t top_k = 0, double top_p = 1, double min_p = 0) {
  GenerateOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  return options;
}

using Ids = std::set<std::int64_t>;

}  // namespace

TEST_CASE("sampling: draws follow the softmax, and the temperature bends it") {
  const auto plain = shares(kLogits, with(1));
  CHECK(plain.at(0) == Approx(0.5).margin(0.002));
  CHECK(plain.at(3) == Approx(0.1).margin(0.002));
  const auto cold = shares(kLogits, with(0.5));  // squares: 0.25, 0.0625, 0.0225, 0.01 over 0.345
  CHECK(cold.at(0) == Approx(0.25 / 0.345).margin(0.002));
  CHECK(cold.at(3) == Approx(0.01 / 0.345).margin(0.002));
}

TEST_CASE("sampling: temperature 0 takes the likeliest, the first of equals") {
  CHECK(drawn(kLogits, with(0)) == Ids{0});
  CHECK(drawn({1, 3, 3}, with(0)) == Ids{1});
}

TEST_CASE("sampling: extreme temperatures give the limits, not numbers that overflow") {
  CHECK(drawn(kLogits, with(1e-300)) == Ids{0});
  CHECK(drawn({1, 3, 3}, with(1e-300)) == Ids{1, 2});
  CHECK(drawn({3e38F, -3e38F}, with(1e-300)) == Ids{0});
  const auto flat = shares({3e38F, -3e38F, 0, 5}, with(1e300));
  CHECK(flat.size() == 4);
  CHECK(flat.at(1) == Approx(0.25).margin(0.002));
}

TEST_CASE("sampling: top-k keeps the k likeliest, ties too, and never more than there are") {
  CHECK(drawn(kLogits, with(1, 2)) == Ids{0, 1});
  CHECK(drawn({0, 0, 0}, with(1, 1)) == Ids{0, 1, 2});
  CHECK(drawn(kLogits, with(1, 100)).size() == 4);
  CHECK(drawn({1, kNone, 0}, with(1, 3)) == Ids{0, 2});
}

TEST_CASE("sampling: top-p keeps the likeliest up to its mass, at least one") {
  CHECK(drawn(kLogits, with(1, 0, 0.74)) == Ids{0, 1});
  CHECK(drawn(kLogits, with(1, 0, 0.76)) == Ids{0, 1, 2});
  CHECK(drawn(kLogits, with(1, 0, 0.0)) == Ids{0});
  // After the temperature: of 0.72, 0.18, 0.07, 0.03 the first is enough for 0.7.
  CHECK(drawn(kLogits, with(0.5, 0, 0.7)) == Ids{0});
  // After top-k: of 0.67 and 0.33 the first is enough for 0.6.
  CHECK(drawn(kLogits, with(1, 2, 0.6)) == Ids{0});
}

TEST_CASE("sampling: top-p among many finds what a full sort finds") {
  std::vector<float> logits(5000);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  for (float& logit : logits) {
    logit = normal(random);
  }
  for (const double p : {0.05, 0.5, 0.9, 0.999}) {
    CAPTURE(p);
    std::vector<double> sorted;
    double sum = 0;
    for (const float logit : logits) {
      sorted.push_back(std::exp(static_cast<double>(logit)));
      sum += sorted.back();
    }
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    std::size_t kept = 0;
    for (double before = 0; before < p * sum; ++kept) {
      before += sorted[kept];
    }
    const double smallest = sorted[kept - 1];
    double least = 1e300;
    std::set<std::int64_t> seen;
    for (int i = 0; i < 20000; ++i) {
      const std::int64_t id = choose(logits, with(1, 0, p), (i + 0.5) / 20000);
      least = std::min(least, std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)])));
      seen.insert(id);
    }
    CHECK(least >= smallest * (1 - 1e-12));
    CHECK(seen.size() <= kept);
    CHECK(seen.size() >= std::min<std::size_t>(kept, 10) / 2);
  }
}

TEST_CASE("sampling: min-p keeps tokens by their share of the likeliest, at least that one") {
  CHECK(drawn(kLogits, with(1, 0, 1, 0.4)) == Ids{0, 1});
  CHECK(drawn(kLogits, with(1, 0, 1, 0.29)) == Ids{0, 1, 2});
  CHECK(drawn(kLogits, with(1, 0, 1, 1.0)) == Ids{0});
}

TEST_CASE("sampling: the repetition penalty divides positive logits and multiplies negative ones") {
  std::vector<float> logits{2, -2, 1, kNone};
  penalize(logits, {0, 1, 3, 99}, 2);
  CHECK(logits == std::vector<float>{1, -4, 1, kNone});
  penalize(logits, {0}, 1e-300);
  CHECK(std::isfinite(logits[0]));

  GenerateOptions options = with(0);
  options.repetition_penalty = 1.5;
  TextDraws draws(std::vector<std::int64_t>{2}, options);
  const std::vector<float> three{3.0F, 2.5F, 3.2F};
  CHECK(draws.next(three) == 0);  // 2 is in the prompt
  CHECK(draws.next(three) == 1);  // and 0 has occurred since
  CHECK(draws.next(three) == 2);
}

TEST_CASE("sampling: a seed gives the same text again, another seed another one") {
  const auto text = [](std::uint64_t seed) {
    GenerateOptions options = with(1);
    options.seed = seed;
    TextDraws draws({}, options);
    std::vector<std::int64_t> ids;
    for (int i = 0; i < 20; ++i) {
      ids.push_back(draws.next(kLogits));
    }
    return ids;
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("sampling: broken logits are an error that names the token") {
  using Catch::Contains;
  CHECK_THROWS_WITH(choose(std::vector<float>{1, NAN}, with(1), 0.5), Contains("token 1") && Contains("nan"));
  CHECK_THROWS_WITH(choose(std::vector<float>{INFINITY, 1}, with(0), 0.5), Contains("token 0") && Contains("inf"));
  CHECK_THROWS_WITH(choose(std::vector<float>{kNone, kNone}, with(1), 0.5), Contains("no token is left"));
}

TEST_CASE("sampling: log-probabilities are those of the softmax, also of far logits") {
  CHECK(log_probability(kLogits, 1) == Approx(std::log(0.25)));
  CHECK(log_probability(std::vector<float>{1e30F, 0}, 0) == 0.0);
}
