// What a rank of a layout has of a model.

#include "config/plan/weights.h"
#include "unit/plan/model.h"

#include <algorithm>

#include "core/error.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

config::Config job() {
  config::Config c;
  c.model.dim = 64;
  c.model.n_layers = 6;
  c.model.n_heads = 8;
  c.model.n_kv_heads = 2;
  c.model.vocab_size = 1000;
  c.model.ffn_hidden_dim = 256;
  return c;
}

double numbers(const std::vector<const Weight*>& weights, const Layout& layout) {
  double out = 0;
  for (const Weight* weight : weights) {
    out += held_numbers(*weight, layout);
  }
  return out;
}

}  // namespace

TEST_CASE("plan: weights written by hand are those that are counted", "[plan]") {
  config::Config c = job();
  const Layout one = Layout::of(c, 1);
  const auto count = [&] {
    const Weights all = weights_of(c.model);
    return numbers(plan::weights_of(all, one, c.model, 0), one);
  };
  CHECK(count() == static_cast<double>(config::parameter_count(c.model)));
}

TEST_CASE("plan: stages have each weight once, but for tied embeddings", "[plan]") {
  config::Config c = job();
  c.distributed.pp = 3;
  const Layout layout = Layout::of(c, 3);
  const Weights all = weights_of(c.model);
  double sum = 0;
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    sum += numbers(plan::weights_of(all, layout, c.model, stage), layout);
  }
  CHECK(sum == static_cast<double>(config::parameter_count(c.model)));
  CHECK(layout.layers(0) + layout.layers(1) + layout.layers(2) == 6);
  c.model.tie_embeddings = true;
  const auto has_table = [&](std::int64_t stage) {
    const std::vector<const Weight*> mine = plan::weights_of(all, layout, c.model, stage);
    return std::any_of(mine.begin(), mine.end(), [](const Weight* w) { return w->name.starts_with("token_embedding"); });
  };
  CHECK(has_table(0));
  CHECK_FALSE(has_table(1));
  CHECK(has_table(2));
}

TEST_CASE("plan: an interleaved pipeline gives each rank every pp-th piece", "[plan]") {
  config::Config c = job();
  c.distributed.pp = 2;
  c.distributed.pp_schedule = "interleaved_1f1b";
  c.distributed.pp_chunks = 3;
  c.distributed.pp_layers = {1, 1, 1, 1, 1, 1};
  const Layout layout = Layout::of(c, 2);
  REQUIRE(layout.stages[1].size() == 3);
  CHECK(layout.stages[1][2].first == 5);
  CHECK(layout.stages[1][2].heads);
  CHECK_FALSE(layout.stages[0][0].heads);
  CHECK(layout.stages[0][0].embeds);
}

TEST_CASE("plan: tensor parallelism divides what its layer says, and fewer heads than ranks lie on several", "[plan]") {
  config::Config c = job();
  c.distributed.tp = 4;
  const Layout layout = Layout::of(c, 4);
  CHECK(held_numbers(weight("q", {64, 64}, Weight::Cut::rows, 8), layout) == 64 * 16);
  CHECK(held_numbers(weight("o", {64, 64}, Weight::Cut::columns, 8), layout) == 64 * 16);
  CHECK(held_numbers(weight("k", {16, 64}, Weight::Cut::rows, 8), layout) == 8 * 64);  // two heads, four ranks
  CHECK(held_numbers(weight("norm", {64}), layout) == 64);
}

TEST_CASE("plan: experts are divided over ep, and their rows over the ranks that hold the same ones", "[plan]") {
  config::Config c = job();
  c.distributed.ep = 2;
  c.distributed.dp_shard = 3;
  const Layout layout = Layout::of(c, 6);
  Weight experts = weight("experts", {8, 16, 64}, Weight::Cut::rows);
  experts.experts = true;
  CHECK(held_numbers(experts, layout) == 4 * 16 * 64);
  CHECK(layout.shards(experts) == 3);
  CHECK(layout.shards(weight("q", {64, 64})) == 6);
  c.distributed.tp = 2;
  CHECK(held_numbers(experts, Layout::of(c, 12)) == 4 * 8 * 64);  // of each expert half of its outputs
}

}  // namespace kf::plan::test
