// Communication beside computation: it changes when calls run, never what comes out of them; and what travels is counted.

#include <ATen/ATen.h>

#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "equal_ranks.h"
#include "model/single_threaded_backward.h"
#include "model/weight_unit.h"
#include "parallel/thread_ranks.h"
#include "parallel/traffic.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

Layout replicas_and_shards(std::int64_t replicas, std::int64_t shards, std::int64_t stage) {
  return {{1, replicas, shards, 1, 1, 1}, stage};
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{replicas_and_shards(2, 1, 1), replicas_and_shards(1, 2, 1), replicas_and_shards(1, 4, 2),
                                       replicas_and_shards(1, 2, 3), replicas_and_shards(2, 2, 3)};
  return all;
}

/// Those whose gradients travel both ways, for jobs of several micro-batches.
const std::vector<Layout>& few_layouts() {
  static const std::vector<Layout> few{replicas_and_shards(1, 4, 2), replicas_and_shards(2, 2, 3)};
  return few;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  bool same = a.losses == b.losses && a.norms == b.norms && a.weights.size() == b.weights.size();
  for (const auto& [name, weight] : a.weights) {
    same = same && at::equal(weight, b.weights.at(name));
  }
  return same;
}

/// What rank 0 of two shards sent in its second step, by kind of call.
Traffic sent_in_a_step(config::Config c, std::int64_t stage) {
  c.distributed.zero_stage = stage;
  Traffic out;
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 1, 2, 1, 1, 1}));
    Bench bench(c, at::kFloat, world);
    SharedRows data(world.share(), false);
    bench.step(data, 0, 1e-3);
    const Traffic before = traffic_of(all)["dp_shard"];
    bench.step(data, 1, 1e-3);
    if (all.rank() == 0) {
      out = traffic_of(all)["dp_shard"].since(before);
    }
  });
  return out;
}

std::int64_t bytes(const Traffic& traffic, CallKind kind) { return traffic.bytes[static_cast<std::size_t>(kind)]; }

/// Numbers of the weights of a block, and of what is in none; the blocks are alike.
std::pair<std::int64_t, std::int64_t> numbers(const config::Config& c) {
  std::int64_t block = 0, rest = 0;
  for (const ParameterPtr& weight : tiny_model(c)->parameters()) {
    (weight->name.rfind("layers.", 0) == 0 ? block : rest) += weight->numel();
  }
  return {block / c.model.n_layers, rest};
}

}  // namespace

TEST_CASE("overlap: what runs beside backward and forward changes no bit", "[data_parallel]") {
  config::Config c = small_config();
  c.model.n_layers = 3;
  bool again = false;  // one of them twice as it is
  SECTION("dense") { again = true; }
  SECTION("micro-batches that add up") { c.train.grad_accum_steps = 2; }
  SECTION("micro-batches that are reduced one by one") {
    c.train.grad_accum_steps = 2;
    c.distributed.reduce_each_micro = true;
  }
  SECTION("recomputed blocks, weights of 16 bits") {
    c.train.activation_checkpointing = "full";
    c.train.mixed_precision = "bf16";
  }
  SECTION("whole matrices with an owner each") { c.optimizer.name = "muon"; }
  const Trial trial{false, 1e-3, 1e-6, c.train.mixed_precision == "bf16" ? at::kBFloat16 : at::kFloat};
  for (const Layout& layout : c.train.grad_accum_steps == 1 ? layouts() : few_layouts()) {
    INFO("dp_replicate " << layout.degrees.dp_replicate << ", dp_shard " << layout.degrees.dp_shard << ", stage " << layout.zero_stage);
    c.distributed.prefetch = true;
    const Outcome beside = train_on(layout, c, trial);
    if (again) {
      CHECK(same_bits(train_on(layout, c, trial), beside));
    }
    c.distributed.prefetch = false;
    CHECK(same_bits(train_on(layout, c, trial), beside));
  }
}

TEST_CASE("overlap: ranks equal one whether micro-batches add up before they are reduced or behind it", "[data_parallel]") {
  config::Config c = small_config();
  c.train.grad_accum_steps = 3;
  c.distributed.reduce_each_micro = GENERATE(false, true);
  SECTION("dense") { check_equal(few_layouts(), c); }
  SECTION("a number a block, which no rank cuts") {
    c.model.layer_scalar = true;
    check_equal(few_layouts(), c);
  }
  SECTION("tied embeddings, frozen blocks") {
    c.model.tie_embeddings = true;
    c.train.frozen = {"layers.0.*"};
    check_equal(few_layouts(), c);
  }
}

TEST_CASE("overlap: what a step sends is what the layout says", "[data_parallel]") {
  config::Config c = small_config();
  c.model.n_layers = 3;
  const auto [block, rest] = numbers(c);
  constexpr std::int64_t kMicros = 2;
  c.train.grad_accum_steps = kMicros;
  const std::int64_t all = c.model.n_layers * block + rest;
  // Rows of an odd number are one more on the first rank; a note a weight travels with the gradients.
  const auto near = [](std::int64_t sent, std::int64_t wanted) { CHECK(static_cast<double>(sent) == Approx(wanted).epsilon(0.02)); };

  SECTION("stage 3 gathers a block for each forward and each backward but the last block's, and what is in no block once") {
    const Traffic sent = sent_in_a_step(c, 3);
    near(bytes(sent, CallKind::gather), 4 * (kMicros * (2 * c.model.n_layers - 1) * block + rest) / 2);
    near(bytes(sent, CallKind::scatter_sum), 4 * all / 2);
    c.distributed.prefetch = false;
    near(bytes(sent_in_a_step(c, 3), CallKind::gather), 4 * (kMicros * 2 * c.model.n_layers * block + rest) / 2);
  }
  SECTION("stages 1 and 2 gather once, behind the update") {
    const std::int64_t stage = GENERATE(1, 2);
    const Traffic sent = sent_in_a_step(c, stage);
    near(bytes(sent, CallKind::gather), 4 * all / 2);
    near(bytes(sent, CallKind::scatter_sum), 4 * all / 2);
  }
  SECTION("by key behind each micro-batch, and in 16 bits") {
    c.distributed.reduce_each_micro = true;
    near(bytes(sent_in_a_step(c, 2), CallKind::scatter_sum), kMicros * 4 * all / 2);
    near(bytes(sent_in_a_step(c, 1), CallKind::scatter_sum), 4 * all / 2);
    c.distributed.reduce_dtype = "bf16";
    near(bytes(sent_in_a_step(c, 3), CallKind::scatter_sum), kMicros * 2 * all / 2);
  }
}

TEST_CASE("overlap: gradients that travel in 16 bits are near those that do not", "[data_parallel]") {
  // Both ranks read the same rows, so the sum of two equal numbers of bfloat16 is one, too: all that is lost is the rounding of each
  // gradient, at most 2^-9 of it, and so at most that share of the norm.
  const auto norm_of = [](const std::string& type) {
    config::Config c = small_config();
    c.distributed.reduce_dtype = type;
    c.train.grad_clip_norm = 0;
    double out = 0;
    run_ranks(2, [&](Group& all) {
      Bench bench(c, at::kFloat, World(all, Mesh({1, 1, 2, 1, 1, 1})));
      SharedRows data({0, 2}, false);
      const StepResult result = bench.step(data, 0, 1e-3);
      out = all.rank() == 0 ? result.grad_norm : out;
    });
    return out;
  };
  const double wide = norm_of("fp32"), low = norm_of("bf16");
  CHECK(low == Approx(wide).epsilon(1.0 / 512));
  CHECK(low != wide);
}

namespace {

/// Four rows of 2, of which each of two ranks trains two.
ParameterPtr cut_weight(std::int64_t rank) {
  ParameterPtr weight = free_weight("w", at::ones({4, 2}));
  weight->set_trains(true);
  weight->placement.cuts.push_back({Axis::dp_shard, 0, {2, 2}, rank});
  weight->master = weight->placement.of(weight->shape).of(weight->value.detach());
  return weight;
}

}  // namespace

TEST_CASE("overlap: a rank may leave out a unit, and a weight that nobody reads has no gradient", "[data_parallel]") {
  struct Seen {
    std::array<at::Tensor, 4> gradients;
  };
  std::array<Seen, 2> seen;
  run_ranks(2, [&](Group& all) {
    const SingleThreadedBackward single;
    const World world(all, Mesh({1, 1, 2, 1, 1, 1}));
    const auto line = std::make_shared<UnitLine>(world, UnitOptions(ZeroStage::gradients));
    std::vector<ParameterPtr> weights;
    std::vector<std::unique_ptr<WeightUnit>> units;
    for (std::int64_t i = 0; i < 4; ++i) {  // three blocks and what is in none
      weights.push_back(cut_weight(all.rank()));
      units.push_back(std::make_unique<WeightUnit>(ParameterList{weights.back()}, world, line));
    }
    at::Tensor x = at::full({4, 2}, static_cast<double>(all.rank() + 1)).set_requires_grad(true);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != 1 || all.rank() == 0) {
        x = units[i]->run(x, [&](const at::Tensor& in) { return in * weights[i]->value; });
      }
    }
    line->begin_backward(true);
    torch::autograd::backward({x.sum()}, {});
    line->end_backward();
    for (std::size_t i = 0; i < 4; ++i) {
      seen[static_cast<std::size_t>(all.rank())].gradients[i] = weights[i]->gradient();
    }
  });
  // Weights are 1, so a gradient is what came in: 1 on rank 0, 2 on rank 1.
  for (const Seen& rank : seen) {
    CHECK(at::equal(rank.gradients[0], at::full({2, 2}, 3.0)));
    CHECK(at::equal(rank.gradients[1], at::full({2, 2}, 1.0)));
    CHECK(at::equal(rank.gradients[2], at::full({2, 2}, 3.0)));
    CHECK_FALSE(rank.gradients[3].defined());
  }
}
