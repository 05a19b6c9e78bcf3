// Known mistakes of training on several ranks: what a rank's labels weigh, ranks without any, auxiliary losses, clipping, muon on parts.

#include <ATen/ATen.h>

#include <cmath>

#include "core/error.h"
#include "equal_ranks.h"
#include "model/weight_unit.h"
#include "parallel/thread_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

constexpr std::int64_t kSequences = 4, kTokens = 32;

/// Sequence i has valid[i] labels that count.
at::Tensor labels_with(const std::vector<std::int64_t>& valid) {
  at::Tensor labels = random_tokens(kSequences, kTokens, 5);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    labels[i].slice(0, valid[static_cast<std::size_t>(i)]).fill_(kIgnore);
  }
  return labels;
}

struct Update {
  std::vector<StepResult> results;
  std::vector<at::Tensor> weights, moments;
};

/// A first update of all labels, and one of these where there are any; every world-th sequence is a rank's. Of rank 0, whole.
Update update(std::int64_t world, bool divided, const std::vector<std::int64_t>& valid) {
  config::Config config = tiny_config();
  config.train.seq_len = kTokens;
  config.train.batch_size = kSequences / world;
  config.train.grad_clip_norm = 0.1;  // less than the norm: the factor must be that of one rank
  config.optimizer.eps = 1e-5;
  config.distributed.zero_stage = divided ? 3 : 1;
  Update out;
  run_ranks(world, [&](Group& all) {
    const World ranks(all, Mesh(divided ? PerAxis{1, 1, world, 1, 1, 1} : PerAxis{1, world, 1, 1, 1, 1}));
    Bench bench(config, at::kFloat, ranks);
    const auto mine = [&](const at::Tensor& t) { return t.slice(0, ranks.rank(), kSequences, world).contiguous(); };
    const at::Tensor tokens = mine(random_tokens(kSequences, kTokens, 3));
    FixedLoader first(tokens, mine(labels_with({kTokens, kTokens, kTokens, kTokens})), config.train.batch_size);
    std::vector<StepResult> results{bench.step(first, 0, 1e-3)};
    if (!valid.empty()) {
      FixedLoader second(tokens, mine(labels_with(valid)), config.train.batch_size);
      results.push_back(bench.step(second, 1, 1e-3));
    }
    const WholeWeights whole(*bench.model);
    if (ranks.leads()) {
      out.results = results;
      for (const ParameterPtr& weight : bench.model->parameters()) {
        out.weights.push_back(weight->value.detach().clone());
      }
      for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
        out.moments.push_back(tensor.clone());
      }
    }
  });
  return out;
}

config::Config experts() {
  config::Config c = small_config();
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  return c;
}

const std::vector<Layout> kTwoAndFour{{{1, 2, 1, 1, 1, 1}, 1}, {{1, 1, 4, 1, 1, 1}, 3}};

}  // namespace

TEST_CASE("ranks: sequences with few labels, and shares without any, weigh by their labels", "[cases][H5][H6][H43]") {
  const std::vector<std::int64_t> valid =
      GENERATE(std::vector<std::int64_t>{3, 1, 32, 0}, std::vector<std::int64_t>{0, 0, 0, 1}, std::vector<std::int64_t>{5, 0, 7, 0});
  CAPTURE(valid);
  const Update one = update(1, false, valid);
  for (const auto& [world, divided] : {std::pair{2, false}, std::pair{2, true}, std::pair{4, false}, std::pair{4, true}}) {
    CAPTURE(world, divided);
    const Update many = update(world, divided, valid);
    for (std::size_t step = 0; step < 2; ++step) {
      CHECK(many.results[step].skipped.empty());
      CHECK(many.results[step].loss == Approx(one.results[step].loss).epsilon(1e-6));
      CHECK(many.results[step].grad_norm == Approx(one.results[step].grad_norm).epsilon(1e-5));
      CHECK(many.results[step].counted == one.results[step].counted);
    }
    REQUIRE(many.weights.size() == one.weights.size());
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
      CHECK((many.weights[i] - one.weights[i]).abs().max().item<double>() <= 1e-6);
    }
  }
}

TEST_CASE("ranks: an update without a label on any rank changes no weight and no moment", "[cases][H6]") {
  for (const auto& [world, divided] : {std::pair{2, false}, std::pair{4, true}}) {
    CAPTURE(world, divided);
    const Update both = update(world, divided, {0, 0, 0, 0}), first = update(world, divided, {});
    CHECK_FALSE(both.results[1].skipped.empty());
    CHECK(std::isfinite(both.results[1].loss));
    CHECK(bitwise_equal(both.weights, first.weights));
    CHECK(bitwise_equal(both.moments, first.moments));
  }
}

TEST_CASE("ranks: auxiliary losses of routers weigh as on one rank", "[cases][H10]") {
  config::Config c = experts();
  c.model.moe_router_z_loss_weight = 0.1;
  c.train.grad_accum_steps = 2;
  check_equal(kTwoAndFour, c);
}

TEST_CASE("ranks: muon takes each matrix of a stack of experts by itself, wherever it lies", "[cases][H17]") {
  config::Config c = experts();
  c.optimizer.name = "muon";
  check_equal(kTwoAndFour, c, {.lr = 1e-3, .tolerance = 1e-5});
}
