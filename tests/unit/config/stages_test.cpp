// Where a pipeline cuts a model.

#include <algorithm>

#include "config/plan/derived.h"
#include "config/plan/stages.h"
#include "core/error.h"

#include <catch2/catch.hpp>

namespace kf::config::test {
namespace {

using Catch::Contains;

ModelConfig model_of(std::int64_t layers, std::int64_t vocabulary = 1) {
  ModelConfig model;
  model.n_layers = layers;
  model.dim = 512;
  model.n_heads = 8;
  model.vocab_size = vocabulary;
  return model;
}

std::vector<std::int64_t> sizes(const std::vector<Stage>& stages) {
  std::vector<std::int64_t> out;
  for (const Stage& stage : stages) {
    out.push_back(stage.end - stage.first);
  }
  return out;
}

double dearest(const ModelConfig& model, const std::vector<Stage>& stages) {
  double most = 0;
  for (const Stage& stage : stages) {
    double cost = stage.heads ? head_flops(model, 128) : 0;
    for (std::int64_t layer = stage.first; layer < stage.end; ++layer) {
      cost += layer_flops(model, layer, 128);
    }
    most = std::max(most, cost);
  }
  return most;
}

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("stages: equal layers are cut evenly, every one is in exactly one stage", "[stages]") {
  CHECK(sizes(cut_stages(model_of(32), 4, 128)) == Sizes{8, 8, 8, 8});
  CHECK(sizes(cut_stages(model_of(32), 1, 128)) == Sizes{32});
  CHECK(sizes(cut_stages(model_of(4), 4, 128)) == Sizes{1, 1, 1, 1});
  CHECK(sizes(cut_stages(model_of(7), 2, 128)) == Sizes{4, 3});
  CHECK(sizes(cut_stages(model_of(10), 3, 128)) == Sizes{4, 3, 3});
  for (std::int64_t layers = 1; layers <= 12; ++layers) {
    for (std::int64_t count = 1; count <= layers; ++count) {
      CAPTURE(layers, count);
      const std::vector<Stage> stages = cut_stages(model_of(layers, 50000), count, 128);
      REQUIRE(static_cast<std::int64_t>(stages.size()) == count);
      std::int64_t next = 0;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        CHECK(stages[i].first == next);
        CHECK(stages[i].end > stages[i].first);
        CHECK(stages[i].embeds == (i == 0));
        CHECK(stages[i].heads == (i + 1 == stages.size()));
        next = stages[i].end;
      }
      CHECK(next == layers);
    }
  }
}

TEST_CASE("stages: no other cut has a cheaper dearest stage", "[stages]") {
  ModelConfig model = model_of(8, GENERATE(1, 8000, 60000, 400000));
  if (GENERATE(false, true)) {  // layers that differ
    model.num_experts = 8;
    model.moe_top_k = 4;
    model.moe_first_dense = 3;
  }
  const double best = dearest(model, cut_stages(model, 3, 128));
  for (std::int64_t a = 1; a < 7; ++a) {
    for (std::int64_t b = a + 1; b < 8; ++b) {
      CAPTURE(a, b);
      CHECK(best <= dearest(model, {{0, a, true, false}, {a, b, false, false}, {b, 8, false, true}}) * (1 + 1e-9));
    }
  }
}

TEST_CASE("stages: a large vocabulary takes layers from the last stage", "[stages]") {
  const Sizes cut = sizes(cut_stages(model_of(12, 60000), 3, 128));
  CHECK(cut.back() < cut.front());
  CHECK(cut[0] + cut[1] + cut[2] == 12);
}

TEST_CASE("stages: more of them than layers cannot be", "[stages]") {
  CHECK_THROWS_WITH(cut_stages(model_of(4), 5, 128), Contains("a model of 4 layers (model.n_layers) cannot be cut into 5 stages"));
  CHECK_THROWS_WITH(cut_stages(model_of(4), 0, 128), Contains("cannot be cut into 0 stages"));
}

}  // namespace kf::config::test
