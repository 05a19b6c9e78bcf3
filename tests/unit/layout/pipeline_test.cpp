// Pipelines equal one rank: every schedule, and everything that lives in a stage of its own or in two.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <deque>
#include <limits>
#include <mutex>

#include "config/plan/pipeline.h"
#include "core/error.h"
#include "equal_ranks.h"
#include "generate/generate.h"
#include "model/pipelined_model.h"
#include "parallel/thread_ranks.h"
#include "train/eval/evaluate.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

using Catch::Contains;

/// pp, dp_replicate, dp_shard.
Layout layout_of(std::int64_t pp, std::int64_t replicas = 1, std::int64_t shards = 1, std::int64_t stage = 1) {
  return {{pp, replicas, shards, 1, 1, 1}, stage};
}

/// Four layers, three micro-batches.
config::Config stages_config(const std::string& schedule = "1f1b") {
  config::Config c = small_config();
  c.model.n_layers = 4;
  c.train.grad_accum_steps = 3;
  c.distributed.pp_schedule = schedule;
  c.distributed.pp_chunks = 2;
  return c;
}

void run_pipeline(std::int64_t ranks, config::Config config, const std::function<void(Bench& bench)>& body,
                  at::ScalarType compute = at::kFloat) {
  config.distributed.pp = ranks;
  run_ranks(ranks, [&](Group& all) {
    const World world(all, Mesh({ranks, 1, 1, 1, 1, 1}));
    Bench bench(config, compute, world);
    body(bench);
  });
}

/// What updates of one rank tell, and the weights that it has.
struct Told {
  std::vector<double> losses;
  std::vector<std::string> skipped;
  std::map<std::string, at::Tensor> weights;

  void add(const StepResult& result) {
    losses.push_back(result.loss);
    skipped.push_back(result.skipped);
  }
  void take_weights(Model& model) {
    for (const ParameterPtr& weight : model.parameters()) {
      if (lies_here(*weight)) {
        weights[weight->name] = weight->master.detach().clone();
      }
    }
  }
};

/// One ends where the other does, to the bit; `part` may have fewer weights.
void check_same(const Told& part, const Told& whole) {
  CHECK(part.losses == whole.losses);
  CHECK(part.skipped == whole.skipped);
  CHECK_FALSE(part.weights.empty());
  for (const auto& [name, weight] : part.weights) {
    INFO(name);
    CHECK(weight.equal(whole.weights.at(name)));
  }
}

}  // namespace

TEST_CASE("pipeline: every schedule equals one rank, alone and with data parallelism", "[pipeline]") {
  const std::string schedule = GENERATE("gpipe", "1f1b", "interleaved_1f1b", "zero_bubble");
  CAPTURE(schedule);
  const config::Config c = stages_config(schedule);
  std::vector<Layout> layouts{layout_of(2), layout_of(2, 1, 2, 3)};
  if (schedule == "1f1b" || schedule == "zero_bubble") {
    layouts.insert(layouts.end(), {layout_of(2, 1, 2), layout_of(2, 2), layout_of(4)});
  }
  check_equal(layouts, c);
  if (schedule == "interleaved_1f1b" || schedule == "zero_bubble") {  // what they do differs most from the order of one rank
    config::Config each = c;
    each.distributed.reduce_each_micro = true;
    check_equal({layout_of(2, 1, 2, 2)}, each);
    check_repeats(layout_of(2, 1, 2, 2), c);
  }
}

TEST_CASE("pipeline: where no norm clips, updates have the bits of one rank", "[pipeline]") {
  config::Config c = stages_config(GENERATE("gpipe", "1f1b", "interleaved_1f1b"));
  CAPTURE(c.distributed.pp_schedule);
  c.train.grad_clip_norm = std::numeric_limits<double>::infinity();
  c.model.dropout_resid = 0.1;  // the same masks
  Trial trial;
  trial.compute = GENERATE(at::kFloat, at::kBFloat16);
  const Outcome one = train_alone(c, trial), many = train_on(layout_of(2), c, trial);
  CHECK(many.losses == one.losses);
  for (const auto& [name, weight] : one.weights) {
    INFO(name);
    CHECK(many.weights.at(name).equal(weight));
  }
}

TEST_CASE("pipeline: an overflow of fp16 in any stage is one of all, and halves the scale as on one rank", "[pipeline]") {
  config::Config c = stages_config(GENERATE("1f1b", "interleaved_1f1b"));
  CAPTURE(c.distributed.pp_schedule);
  c.train.mixed_precision = "fp16";
  c.train.loss_scale = std::ldexp(1.0, 24);
  c.train.grad_clip_norm = std::numeric_limits<double>::infinity();
  const auto train = [](Bench& bench) {
    SharedRows rows({}, false);
    Told told;
    for (std::int64_t step = 0; step < 14; ++step) {
      told.add(bench.step(rows, step, 1e-3));
    }
    told.take_weights(*bench.model);
    return told;
  };
  Bench alone(c, at::kHalf);
  const Told one = train(alone);
  CHECK_THAT(one.skipped.front(), Contains("a gradient overflowed fp16 at loss scale 16777216; it is now 8388608"));
  CHECK(one.skipped.back().empty());
  std::vector<Told> stages(2);
  run_pipeline(
      2, c, [&](Bench& bench) { stages[static_cast<std::size_t>(bench.world.rank())] = train(bench); }, at::kHalf);
  for (const Told& stage : stages) {
    check_same(stage, one);
  }
}

TEST_CASE("pipeline: updates that run ahead have the bits of those that are waited for", "[pipeline]") {
  const config::Config c = stages_config(GENERATE("1f1b", "zero_bubble"));
  CAPTURE(c.distributed.pp_schedule);
  const auto train = [&](std::size_t ahead) {
    std::vector<Told> stages(2);
    run_pipeline(2, c, [&](Bench& bench) {
      KF_CHECK(bench.stepper->why_not_ahead().empty(), Code::other, "{}", bench.stepper->why_not_ahead());
      SharedRows rows({}, false);
      Told& told = stages[static_cast<std::size_t>(bench.world.rank())];
      std::deque<Launched> under_way;
      for (std::int64_t step = 0; step < 6; ++step) {
        if (ahead == 0) {
          told.add(bench.step(rows, step, 1e-3));
          continue;
        }
        under_way.push_back(bench.stepper->launch(rows, step, 1e-3));
        if (under_way.size() > ahead) {
          told.add(bench.stepper->settle(std::move(under_way.front())));
          under_way.pop_front();
        }
      }
      for (Launched& launched : under_way) {
        told.add(bench.stepper->settle(std::move(launched)));
      }
      told.take_weights(*bench.model);
    });
    return stages;
  };
  const std::vector<Told> waited = train(0), ahead = train(2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    check_same(ahead[stage], waited[stage]);
  }
}

TEST_CASE("pipeline: models of every kind equal one rank", "[pipeline]") {
  config::Config c = stages_config(GENERATE("1f1b", "zero_bubble"));
  CAPTURE(c.distributed.pp_schedule);
  Trial trial;
  std::vector<Layout> layouts{layout_of(2), layout_of(2, 1, 2, 3)};
  bool later = false;  // gradients of weights that come later meet something of their own
  SECTION("tied embeddings") { c.model.tie_embeddings = later = true; }
  SECTION("layers that look ahead, with a norm of the embedding") {
    later = true;
    c.model.mtp_layers = 1;
    c.train.mtp_loss_weight = 0.3;
    c.model.embed_norm = true;
  }
  SECTION("packed documents") { trial.packed = true; }
  SECTION("z-loss, and a head inside of the loss") {
    c.train.z_loss_weight = 1e-3;
    c.train.loss_fn = "fused_linear_cross_entropy";
  }
  SECTION("recomputed blocks, dropout") {
    later = true;
    c.train.activation_checkpointing = "full";
    c.model.dropout_resid = 0.1;
    layouts.pop_back();  // whose data ranks draw differently
  }
  SECTION("a first stage that does not train") {
    later = true;
    c.train.frozen = {"token_embedding.*", "layers.0.*", "layers.1.*"};
  }
  SECTION("a last stage that does not train") { c.train.frozen = {"output_head.*", "norm.*", "layers.2.*", "layers.3.*"}; }
  SECTION("adapters") {
    later = true;
    c.adapter.name = "lora";
    c.adapter.targets = {"q_proj", "down_proj"};
    c.adapter.dropout = 0.3;
    layouts.pop_back();
  }
  SECTION("queries that are clipped") {
    c.optimizer.qk_clip = true;
    c.optimizer.qk_clip_tau = 0.01;
  }
  SECTION("other cuts") {
    c.model.n_layers = 5;
    c.distributed.pp_layers = {1, 4};
  }
  if (c.distributed.pp_schedule == "zero_bubble") {
    layouts.resize(later ? 1 : 0);
  }
  check_equal(layouts, c, trial);
}

TEST_CASE("pipeline: optimizers that look at whole weights, or at all of them together", "[pipeline]") {
  config::Config c = stages_config();
  c.model.tie_embeddings = true;
  SECTION("muon") { c.optimizer.name = "muon"; }
  SECTION("a norm of all updates") {
    c.optimizer.update_norm_window = 4;
    c.optimizer.update_norm_sigma = 0.1;
  }
  SECTION("shares of each update") { c.optimizer.update_rms_clip = 0.5; }
  check_equal({layout_of(2), layout_of(4), layout_of(2, 1, 2, 2)}, c);
}

TEST_CASE("pipeline: experts equal one rank, with their losses and numbers", "[pipeline]") {
  config::Config c = stages_config(GENERATE("1f1b", "interleaved_1f1b", "zero_bubble"));
  CAPTURE(c.distributed.pp_schedule);
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  c.model.moe_aux_loss_weight = 0.01;
  c.model.moe_router_z_loss_weight = 1e-3;
  c.model.moe_first_dense = 2;
  const bool biases = c.distributed.pp_schedule == "1f1b";
  if (biases) {
    c.model.moe_router = "sigmoid_topk";
    c.model.moe_sequence_aux_loss_weight = 0.01;
  }
  check_equal({layout_of(2), layout_of(2, 1, 2, 2)}, c);

  Bench one(c);
  SharedRows rows({}, false);
  const StepResult alone = one.step(rows, 0, 1e-3);
  const auto numbers = one.model->metrics();
  std::mutex mutex;
  run_pipeline(2, c, [&](Bench& bench) {
    SharedRows mine({}, false);
    const StepResult result = bench.step(mine, 0, 1e-3);
    const auto all = bench.model->metrics();
    const std::lock_guard lock(mutex);
    CHECK(result.aux_loss == Approx(alone.aux_loss).epsilon(1e-5));
    REQUIRE(all.size() == numbers.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(all[i].first);
      CHECK(all[i].second == Approx(numbers[i].second).epsilon(1e-5));
    }
  });
}

TEST_CASE("pipeline: stages whose layers are divided, or whose sequences are", "[pipeline]") {
  config::Config c = stages_config(GENERATE("interleaved_1f1b", "zero_bubble"));
  CAPTURE(c.distributed.pp_schedule);
  c.model.vocab_size = 100;
  c.model.tie_embeddings = true;
  Trial trial;
  trial.packed = true;
  trial.tolerance = 1e-5;  // as of all layouts of several axes
  check_equal({{{2, 1, 1, 1, 1, 2}, 1}, {{2, 1, 1, 2, 1, 1}, 1}}, c, trial);
  if (c.distributed.pp_schedule == "zero_bubble") {
    c.train.activation_checkpointing = "full";
    check_equal({{{2, 1, 1, 2, 1, 2}, 1}}, c, trial);
    c.distributed.sequence_parallel = false;
    check_equal({{{2, 1, 1, 1, 1, 2}, 1}}, c, trial);
  }
}

TEST_CASE("pipeline: fewer micro-batches than stages are enough", "[pipeline]") {
  config::Config c = stages_config(GENERATE("1f1b", "interleaved_1f1b", "zero_bubble"));
  CAPTURE(c.distributed.pp_schedule);
  c.train.grad_accum_steps = 1;
  check_equal({layout_of(2)}, c);
}

TEST_CASE("pipeline: evaluation and generation give what one rank gives", "[pipeline]") {
  const config::Config c = stages_config(GENERATE("1f1b", "interleaved_1f1b"));
  const FixedLoader fixed({make_batch(random_tokens(2, kLength, 5), random_tokens(2, kLength, 6)),
                           make_batch(random_tokens(3, kLength, 7), random_tokens(3, kLength, 8))});
  const GenerateOptions greedy = [] {
    GenerateOptions options;
    options.max_new_tokens = 6;
    options.temperature = 0;
    return options;
  }();
  Bench one(c);
  FixedLoader data = fixed;
  const EvalSums expected = evaluate_sums(*one.model, data, {});
  const std::vector<std::int64_t> text = generate_ids(*one.model, {1, 2, 3}, greedy, std::nullopt, at::kCPU);
  const at::Tensor logits = logits_of(*one.model, random_tokens(2, kLength, 5));
  std::mutex mutex;
  run_pipeline(2, c, [&](Bench& bench) {
    FixedLoader mine = fixed;
    const EvalSums sums = evaluate_sums(*bench.model, mine, {});
    const std::vector<std::int64_t> own = generate_ids(*bench.model, {1, 2, 3}, greedy, std::nullopt, at::kCPU);
    const at::Tensor all = logits_of(*bench.model, random_tokens(2, kLength, 5));
    const std::lock_guard lock(mutex);
    CHECK(sums.loss == expected.loss);
    CHECK(sums.hits == expected.hits);
    CHECK(sums.tokens == expected.tokens);
    CHECK(own == text);
    CHECK(all.equal(logits));
  });
}

TEST_CASE("pipeline: hidden states of an odd length go from stage to stage in parts, by a cache whole", "[pipeline]") {
  config::Config c = stages_config();
  c.model.vocab_size = 100;
  constexpr std::int64_t kOdd = kLength - 1;
  const FixedLoader fixed({make_batch(random_tokens(2, kOdd, 5), random_tokens(2, kOdd, 6))});
  const GenerateOptions greedy = [] {
    GenerateOptions options;
    options.max_new_tokens = 6;
    options.temperature = 0;
    return options;
  }();
  Bench one(c);
  FixedLoader data = fixed;
  const EvalSums expected = evaluate_sums(*one.model, data, {});
  const at::Tensor token = random_tokens(2, 1, 5), logits = logits_of(*one.model, token);  // of one position a rank has none
  const std::vector<std::int64_t> text = generate_ids(*one.model, {1, 2, 3}, greedy, std::nullopt, at::kCPU);
  c.distributed.pp = c.distributed.tp = 2;
  std::mutex mutex;
  run_ranks(4, [&](Group& all) {
    const World world(all, Mesh({2, 1, 1, 1, 1, 2}));
    Bench bench(c, at::kFloat, world);
    FixedLoader mine = fixed;
    const EvalSums sums = evaluate_sums(*bench.model, mine, {});
    const at::Tensor own = logits_of(*bench.model, token);
    const std::vector<std::int64_t> ids = generate_ids(*bench.model, {1, 2, 3}, greedy, std::nullopt, at::kCPU);
    const std::lock_guard lock(mutex);
    CHECK(sums.loss == Approx(expected.loss).epsilon(1e-5));
    CHECK(sums.tokens == expected.tokens);
    CHECK((own - logits).abs().max().item<double>() <= 1e-4);
    CHECK(ids == text);
  });
}

TEST_CASE("pipeline: a rank holds its pieces alone", "[pipeline]") {
  config::Config c = stages_config();
  c.model.tie_embeddings = true;
  std::mutex mutex;
  run_pipeline(4, c, [&](Bench& bench) {
    const std::int64_t rank = bench.world.rank();
    const std::lock_guard lock(mutex);
    for (const ParameterPtr& weight : bench.model->parameters()) {
      CAPTURE(rank, weight->name);
      const bool table = weight->name.starts_with("token_embedding.") && (rank == 0 || rank == 3);
      const bool layer = weight->name.starts_with("layers." + std::to_string(rank) + ".");
      const bool norm = weight->name.starts_with("norm.") && rank == 3;
      CHECK((weight->value.numel() > 0) == (table || layer || norm));
      CHECK(weight->first == (layer || norm || (table && rank == 0)));
    }
  });
}

TEST_CASE("pipeline: what cannot run in stages is refused, and an error on one rank ends all", "[pipeline]") {
  config::Config c = stages_config();
  SECTION("curvature") {
    c.optimizer.name = "sophia_h";
    CHECK_THROWS_WITH(run_pipeline(2, c,
                                   [](Bench& bench) {
                                     SharedRows rows({}, false);
                                     bench.step(rows, 0, 1e-4);
                                   }),
                      Contains("needs second derivatives of the loss, whose graph ends at the border of a pipeline stage"));
  }
  SECTION("a rank that throws") {
    CHECK_THROWS_WITH(run_pipeline(2, c,
                                   [](Bench& bench) {
                                     SharedRows rows({}, false);
                                     Stepper::Callbacks callbacks;
                                     callbacks.micro_end = [&, count = 0]() mutable {
                                       KF_CHECK(bench.world.rank() == 0 || ++count < 2, Code::script, "the disk is full");
                                     };
                                     bench.stepper->run(rows, 0, 1e-4, callbacks);
                                   }),
                      Contains("rank 1: the disk is full"));
  }
}

}  // namespace kf::test
