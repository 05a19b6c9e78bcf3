// Mixtures in blocks: exact shares, each source's sequences in order and none left out, any sequence at once, changes and ends.

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "core/error.h"
#include "data/order/block_mixture.h"

#include <catch2/catch.hpp>

namespace {

using kf::BlockMixture;
using kf::BlockMixtureOptions;
using kf::Draw;
using kf::MixStop;
using Counts = std::vector<std::int64_t>;

std::vector<Draw> draws(BlockMixture& mixture, std::int64_t first, std::int64_t count, std::int64_t stride = 1) {
  std::vector<Draw> out(static_cast<std::size_t>(count));
  mixture.read(first, stride, out);
  return out;
}

/// Whether every source's ordinals count up from 0 without a gap.
bool in_order(const std::vector<Draw>& all) {
  std::map<std::int64_t, std::int64_t> next;
  for (const Draw& draw : all) {
    if (draw.ordinal != next[draw.source]++) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("mixture: after every block each source is within one of its share (H22)") {
  std::mt19937 random(1);
  std::vector<std::vector<double>> mixtures{{0.1, 0.2, 0.69999994}, {1}, {0.001, 0.999}, {0.5, 0.5, 0}, {1e-9, 1}};
  for (int i = 0; i < 15; ++i) {  // many sources, some of which have less than one sequence a block
    std::vector<double> weights(1 + random() % 30);
    for (double& weight : weights) {
      weight = std::pow(static_cast<double>(random() % 1000 + 1) / 1000, 4);
    }
    mixtures.push_back(weights);
  }
  for (const std::vector<double>& weights : mixtures) {
    double total = 0;
    for (const double weight : weights) {
      total += weight;
    }
    for (const std::int64_t block : {1, 3, 10, 100}) {
      BlockMixture mixture(Counts(weights.size(), 1000), weights, {block, 5});
      Counts drawn(weights.size());
      double farthest = 0;
      for (std::int64_t b = 1; b <= 100; ++b) {
        for (const Draw& draw : draws(mixture, (b - 1) * block, block)) {
          ++drawn[static_cast<std::size_t>(draw.source)];
        }
        for (std::size_t i = 0; i < weights.size(); ++i) {
          farthest = std::max(farthest, std::abs(static_cast<double>(drawn[i]) - weights[i] / total * static_cast<double>(b * block)));
        }
        REQUIRE(mixture.counts(b * block) == drawn);
      }
      CAPTURE(weights, block);
      CHECK(farthest < 1 + 1e-6);  // shares are rounded to 2^-40
    }
  }
}

TEST_CASE("mixture: every sequence of a source is read once and in order, with many sources too") {
  BlockMixture mixture({10, 20, 30, 5}, {0.4, 0.3, 0.2, 0.1}, {7, 5});
  CHECK(in_order(draws(mixture, 0, 2000)));
  CHECK(mixture.size() == BlockMixture::kEndless);
}

TEST_CASE("mixture: any sequence can be reached at once, forwards and backwards, and ranks read every world-th") {
  BlockMixture straight({100, 100, 100}, {0.2, 0.3, 0.5}, {16, 3});
  const std::vector<Draw> all = draws(straight, 0, 1000);
  BlockMixture jumping({100, 100, 100}, {0.2, 0.3, 0.5}, {16, 3});
  for (const std::int64_t n : {999, 0, 500, 501, 15, 16, 17, 998, 3}) {
    CHECK(draws(jumping, n, 1).front() == all[static_cast<std::size_t>(n)]);
  }
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<Draw> own = draws(jumping, rank, 300, 3);
    for (std::size_t i = 0; i < own.size(); ++i) {
      REQUIRE(own[i] == all[static_cast<std::size_t>(rank) + 3 * i]);
    }
  }
}

TEST_CASE("mixture: the sources of a block are mixed, differently in every block and for every seed") {
  std::set<std::vector<std::int64_t>> patterns;
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    BlockMixture mixture({1000, 1000}, {0.5, 0.5}, {32, seed});
    for (std::int64_t block = 0; block < 10; ++block) {
      std::vector<std::int64_t> pattern;
      for (const Draw& draw : draws(mixture, block * 32, 32)) {
        pattern.push_back(draw.source);
      }
      patterns.insert(pattern);
    }
  }
  CHECK(patterns.size() == 30);
}

TEST_CASE("mixture: a change takes over where each source is, in the middle of a block too") {
  for (const std::int64_t at : {0, 1, 37, 40, 41, 155}) {
    BlockMixture mixture({50, 60}, {0.5, 0.5}, {10, 1});
    const std::vector<Draw> before = draws(mixture, 0, 200);
    mixture.change(at, {0.1, 0.9});
    const std::vector<Draw> after = draws(mixture, 0, 200 + at);
    CHECK(std::equal(before.begin(), before.begin() + at, after.begin()));
    CHECK(in_order(after));
    Counts drawn(2);
    for (std::size_t i = static_cast<std::size_t>(at); i < after.size(); ++i) {
      ++drawn[static_cast<std::size_t>(after[i].source)];
    }
    CHECK(drawn == Counts{20, 180});
  }
  BlockMixture mixture({50, 60}, {0.5, 0.5}, {10, 1});
  mixture.change(30, {1, 0});
  mixture.change(30, {0, 1});  // takes its place
  for (const Draw& draw : draws(mixture, 30, 50)) {
    CHECK(draw.source == 1);
  }
  CHECK_THROWS_WITH(mixture.change(29, {1, 0}), Catch::Contains("comes too late"));
}

TEST_CASE("mixture: mix_stop = first ends before anything is read twice") {
  for (const std::int64_t epochs : {0, 1, 3}) {
    BlockMixture mixture({25, 1000}, {0.5, 0.5}, {16, 2, MixStop::first, epochs});
    const std::int64_t passes = std::max<std::int64_t>(1, epochs);
    const Counts counts = mixture.counts(mixture.size());
    CHECK(counts[0] == 25 * passes);
    CHECK(std::abs(counts[1] - 25 * passes) <= 16);
    CHECK(in_order(draws(mixture, 0, mixture.size())));
    CHECK_THROWS_WITH(draws(mixture, mixture.size(), 1), Catch::Contains("it ends after"));
  }
}

TEST_CASE("mixture: mix_stop = drop reads every source to its end, the others in their shares") {
  const Counts sizes{25, 400, 300, 7};
  BlockMixture mixture(sizes, {0.4, 0.3, 0.2, 0.1}, {16, 2, MixStop::drop, 2});
  REQUIRE(mixture.size() == 2 * (25 + 400 + 300 + 7));
  const std::vector<Draw> all = draws(mixture, 0, mixture.size());
  CHECK(in_order(all));
  CHECK(mixture.counts(mixture.size()) == Counts{50, 800, 600, 14});
  // Once the two small ones are out, the large ones keep 3 to 2.
  const Counts from = mixture.counts(400);
  const Counts to = mixture.counts(800);
  CHECK(from[0] == 50);
  CHECK(from[3] == 14);
  CHECK(std::abs((to[1] - from[1]) - 240) <= 2);

  BlockMixture without({25, 400}, {1, 0}, {16, 2, MixStop::drop, 0});
  CHECK(without.size() == 25);
  BlockMixture changed(sizes, {0.4, 0.3, 0.2, 0.1}, {16, 2, MixStop::drop, 0});
  changed.change(100, {0.1, 0.1, 0.1, 0.7});  // 7 and 25 are used up by then: their weights do nothing
  CHECK(changed.size() == 732);
  CHECK(in_order(draws(changed, 0, 732)));
}

TEST_CASE("mixture: with repeat and epochs the end is so many times all there is") {
  BlockMixture mixture({25, 75}, {0.9, 0.1}, {16, 2, MixStop::repeat, 2});
  CHECK(mixture.size() == 200);
  CHECK(in_order(draws(mixture, 0, 200)));
}

TEST_CASE("mixture: a source of one sequence works, one of none is refused unless its weight is 0") {
  BlockMixture mixture({1, 1000}, {0.001, 0.999}, {100, 2});
  CHECK(mixture.counts(10'000) == Counts{10, 9990});
  CHECK_THROWS_WITH(BlockMixture({0, 10}, {0.5, 0.5}, BlockMixtureOptions{10}), Catch::Contains("no samples"));
  BlockMixture fine({0, 10}, {0, 1}, BlockMixtureOptions{10});
  CHECK(fine.counts(20) == Counts{0, 20});
}
