// Experts divided over ranks: N ranks equal one. Ranks are threads here; tests/e2e/ranks_test.cpp has processes.

#include <ATen/ATen.h>

#include <functional>

#include "core/error.h"
#include "equal_ranks.h"
#include "kernels/grouped_linear/expert_rows.h"
#include "layout/parallelize.h"
#include "model/first_values.h"
#include "model/moe/capacity.h"
#include "model/moe/expert_exchange.h"
#include "model/transformer/build.h"
#include "parallel/thread_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// pp, dp_replicate, dp_shard, cp, ep, tp; the stage.
const std::vector<Layout> kEp{
    {{1, 1, 1, 1, 2, 1}, 1}, {{1, 1, 1, 1, 4, 1}, 3}, {{1, 1, 2, 1, 2, 1}, 1}, {{1, 1, 2, 1, 2, 1}, 3}, {{1, 2, 1, 1, 2, 1}, 2}};
/// For variants of what happens inside of a layer.
const std::vector<Layout> kFew{{{1, 1, 1, 1, 2, 1}, 1}, {{1, 1, 2, 1, 2, 1}, 3}};

config::Config with_experts() {
  config::Config c = small_config();
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  c.model.moe_ffn_dim = 16;
  c.model.moe_aux_loss_weight = 0.01;
  c.model.moe_router_z_loss_weight = 1e-3;
  return c;
}

/// Every expert but the first two is out of reach.
void send_all_to_two(Model& model) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& weight : model.parameters()) {
    if (weight->name.ends_with("expert_bias")) {
      weight->value.narrow(0, 0, 2).fill_(100);
    }
  }
}

std::vector<double> losses_of_two_experts(const config::Config& config, const World& world) {
  Bench bench(config, at::kFloat, world);
  send_all_to_two(*bench.model);
  SharedRows data(world.share(), false);
  std::vector<double> out;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const StepResult result = bench.step(data, step, 1e-3);
    out.push_back(result.loss);
    out.push_back(result.grad_norm);
  }
  return out;
}

}  // namespace

TEST_CASE("expert parallel: ranks equal one, softmax and sigmoid scores, reruns to the bit", "[expert_parallel]") {
  config::Config c = with_experts();
  SECTION("softmax scores") {
    check_equal(kEp, c);
    check_repeats(kEp[3], c);
  }
  SECTION("sigmoid scores, with selection biases and a balance loss of sequences") {
    c.model.moe_router = "sigmoid_topk";
    c.model.moe_sequence_aux_loss_weight = 0.01;
    c.model.moe_sequence_aux_scope = GENERATE("batch", "sequence");
    check_equal(kFew, c);
  }
}

TEST_CASE("expert parallel: ranks equal one whatever stands in and around the experts", "[expert_parallel]") {
  config::Config c = with_experts();
  SECTION("capacity over the tokens of all ranks") {
    c.model.moe_capacity_factor = 0.6;
    check_equal(kFew, c);
    check_equal({{{1, 1, 2, 1, 1, 1}, 1}}, c);  // also without experts that are divided
  }
  SECTION("gradients scaled by the loads of all ranks") {
    c.model.moe_gradient_scale = true;
    check_equal(kFew, c);
  }
  SECTION("shared experts, packed names, biases, a width of their own") {
    c.model.moe_shared_experts = 2;
    c.model.moe_packed_experts = true;
    c.model.mlp_bias = true;
    c.model.moe_input_dim = 12;
    check_equal(kFew, c);
  }
  SECTION("weights on the input, beside a dense layer, some dropped") {
    c.model.moe_router = "sigmoid";
    c.model.moe_top_k = 1;
    c.model.moe_weight_on_input = true;
    c.model.moe_capacity_factor = 0.6;
    check_equal(kFew, c);
  }
  SECTION("one expert after the other") {
    c.model.moe_impl = "loop";
    c.model.moe_beside_dense = true;
    c.model.norm_placement = "sandwich";
    check_equal(kFew, c, {.tolerance = 1e-5});  // a gradient near Adam's eps: its last bits move a weight by 1e-6 a step
  }
}

TEST_CASE("expert parallel: ranks equal one with accumulation and recomputation", "[expert_parallel]") {
  config::Config c = with_experts();
  SECTION("micro-batches, packed documents") {
    c.train.grad_accum_steps = 2;
    check_equal({kEp[3]}, c, {.packed = true});
  }
  SECTION("recomputed blocks") {
    c.train.activation_checkpointing = "full";
    check_equal({kEp[3]}, c);
  }
  SECTION("recomputed, of which some is kept") {
    c.train.activation_checkpointing = "selective";
    check_equal({kEp[0]}, c);
  }
}

TEST_CASE("expert parallel: ranks equal one with optimizers of whole matrices, frozen experts and adapters", "[expert_parallel]") {
  config::Config c = with_experts();
  SECTION("muon: a rank owns the stack of the experts that it shares") {
    c.optimizer.name = "muon";
    check_equal(kFew, c);
  }
  SECTION("optimizers that keep other numbers of each expert than its weights have") {
    c.optimizer.name = GENERATE("kron", "soap", "adam_mini", "scion");
    c.model.mlp_bias = true;  // a vector of each expert
    if (c.optimizer.name == "soap") {
      c.optimizer.eps = 1e-3;
      config::PartOptions options;
      options["max_dim"] = config::Node(std::int64_t{16});
      options["frequency"] = config::Node(std::int64_t{10});
      c.parts["optimizer.soap"] = options;
    }
    check_equal({kFew[1]}, c, {.lr = c.optimizer.name == "scion" ? 1e-7 : 1e-3});  // see data_parallel_test.cpp
  }
  SECTION("optimizers that look at norms or means of an expert") {
    c.model.mlp_bias = true;
    c.optimizer.name = GENERATE("mars", "cautious_adamw", "adamw");
    c.optimizer.update_rms_clip = c.optimizer.name == "adamw" ? 0.5 : 0;
    check_equal({kFew[1]}, c, {.lr = c.optimizer.name == "cautious_adamw" ? 1e-4 : 1e-3});  // see data_parallel_test.cpp
  }
  SECTION("second derivatives") {
    c.optimizer.name = "sophia_h";
    c.optimizer.eps = 1e-2;  // see data_parallel_test.cpp
    check_equal({kFew[1]}, c, {.lr = 1e-4});
  }
  SECTION("experts of one layer are frozen") {
    c.train.frozen = {"layers.0.mlp.*"};
    check_equal({kFew[1]}, c);
  }
  SECTION("LoRA on attention") {
    c.adapter.name = "lora";
    c.adapter.rank = 4;
    c.adapter.targets = {"q_proj", "v_proj"};
    check_equal({kFew[1]}, c);
  }
}

TEST_CASE("expert parallel: ranks equal one where other axes divide layers, tokens or the numbers of a layer, too", "[expert_parallel]") {
  config::Config c = with_experts();
  c.model.vocab_size = 100;  // which tp divides
  c.model.moe_shared_experts = 1;
  SECTION("tp divides the inside of each expert") {
    c.model.mlp_bias = true;
    c.model.moe_impl = GENERATE("grouped", "loop");
    check_equal({{{1, 1, 1, 1, 2, 2}, 1}}, c);
  }
  SECTION("tp, with what an expert has no room for") {
    c.model.moe_capacity_factor = 0.6;
    check_equal({{{1, 1, 2, 1, 2, 2}, 3}}, c);
  }
  SECTION("cp divides sequences, whose places and loads count as a whole") {
    c.model.moe_router = "sigmoid_topk";
    c.model.moe_sequence_aux_loss_weight = 0.01;
    c.model.moe_sequence_aux_scope = "sequence";
    c.model.moe_capacity_factor = 0.6;
    check_equal({{{1, 1, 1, 2, 2, 1}, 3}}, c);
  }
  SECTION("pp divides layers") {
    c.train.grad_accum_steps = 2;
    check_equal({{{2, 1, 1, 1, 2, 1}, 1}}, c);
  }
}

TEST_CASE("expert parallel: bf16 stays near one rank", "[expert_parallel]") {
  config::Config c = with_experts();
  c.train.mixed_precision = "bf16";
  const Trial trial{.compute = at::kBFloat16};
  const Outcome one = train_alone(c, trial), many = train_on({{1, 1, 2, 1, 2, 1}, 3}, c, trial);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(1e-2));  // 8 bits; a token may visit another expert
  }
}

TEST_CASE("expert parallel: a rank that gets no token keeps step", "[expert_parallel]") {
  config::Config c = with_experts();
  c.model.moe_router = "sigmoid_topk";
  c.train.activation_checkpointing = GENERATE("none", "full");
  const std::vector<double> one = losses_of_two_experts(c, World());
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 1, 1, 1, 2, 1}));
    const std::vector<double> many = losses_of_two_experts(c, world);
    for (std::size_t i = 0; i < one.size(); ++i) {
      KF_CHECK(std::abs(many[i] - one[i]) <= 1e-5 * std::abs(one[i]), Code::other, "{}: {} and {}", i, many[i], one[i]);
    }
  });
}

TEST_CASE("expert parallel: rows come to their experts in order, and come back", "[expert_parallel]") {
  // Rank r sends row (r, e, i) for expert e, i < counts[r][e]; ranks 0 and 1 have experts 0, 1 and 2, 3.
  const std::vector<std::vector<std::int64_t>> counts{{2, 0, 1, 0}, {1, 0, 0, 0}};
  std::vector<at::Tensor> seen(2);
  run_ranks(2, [&](Group& ranks) {
    const std::vector<std::int64_t>& own = counts[static_cast<std::size_t>(ranks.rank())];
    std::vector<at::Tensor> rows;
    for (std::int64_t e = 0; e < 4; ++e) {
      for (std::int64_t i = 0; i < own[static_cast<std::size_t>(e)]; ++i) {
        rows.push_back(at::tensor({100 * ranks.rank() + 10 * e + i}, at::kFloat));
      }
    }
    const at::Tensor mine = at::stack(rows).requires_grad_();
    const ExpertExchange exchange(at::tensor(own, at::kLong), ranks);
    KF_CHECK(exchange.sent() == mine.size(0), Code::other, "{} rows are sent", exchange.sent());
    const at::Tensor come = exchange.there(mine);
    const at::Tensor back = exchange.back(come * (ranks.rank() + 2));
    back.sum().backward();
    seen[static_cast<std::size_t>(ranks.rank())] = at::cat({come.detach().flatten(), back.detach().flatten(), mine.grad().flatten()});
  });
  CHECK(seen[0].equal(at::tensor({0, 1, 100, /*back*/ 0, 2, 20 * 3, /*gradients*/ 2, 2, 3}, at::kFloat)));
  CHECK(seen[1].equal(at::tensor({20, /*back*/ 200, /*gradients*/ 2}, at::kFloat)));
}

TEST_CASE("expert parallel: ranks find together which tokens an expert has room for", "[expert_parallel]") {
  constexpr std::int64_t kBatch = 3, kTokens = 4, kSlots = 2, kExperts = 5, kReaders = 2;
  const at::Tensor all = random_tokens(kBatch * kReaders * kTokens, kSlots, 3, kExperts).view({kBatch, kReaders, kTokens, kSlots});
  const double factor = GENERATE(0.2, 0.7, 1.0);
  const at::Tensor whole = within_capacity(all.flatten(0, 2), kExperts, factor).view_as(all);
  SECTION("sequences") {
    run_ranks(kReaders, [&](Group& ranks) {
      const World world(ranks, Mesh({1, 1, 1, 1, kReaders, 1}));
      const at::Tensor own = all.select(1, ranks.rank()).reshape({-1, kSlots});
      const at::Tensor fits = within_capacity(own, kExperts, factor, {kTokens, {}}, world);
      KF_CHECK(fits.equal(whole.select(1, ranks.rank()).reshape({-1, kSlots})), Code::other, "rank {}", ranks.rank());
    });
  }
  SECTION("sequences that cp divides, the outer tokens to one rank and the inner ones to the other") {
    run_ranks(kReaders * 2, [&](Group& ranks) {
      const World world(ranks, Mesh({1, 1, kReaders, 2, 1, 1}));
      const std::int64_t reader = ranks.rank() / 2;
      const at::Tensor positions = ranks.rank() % 2 == 0 ? at::tensor({0, 3}, at::kLong) : at::tensor({1, 2}, at::kLong);
      const auto part = [&](const at::Tensor& of) { return of.select(1, reader).index_select(1, positions).reshape({-1, kSlots}); };
      const at::Tensor fits = within_capacity(part(all), kExperts, factor, {2, positions}, world);
      KF_CHECK(fits.equal(part(whole)), Code::other, "rank {}", ranks.rank());
    });
  }
}

TEST_CASE("expert parallel: a rank draws and holds its own experts alone", "[expert_parallel]") {
  const config::Config c = with_experts();
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 1, 1, 1, 2, 1}));
    Bench bench(c, at::kFloat, world);
    std::int64_t stacks = 0;
    for (const ParameterPtr& weight : bench.model->parameters()) {
      if (weight->stack) {
        ++stacks;
        const at::Tensor whole = first_values(*weight, static_cast<std::uint64_t>(c.train.seed), Range::whole(weight->shape));
        KF_CHECK(weight->value.equal(whole.narrow(0, 2 * all.rank(), 2)) && weight->value.numel() * 2 == whole.numel(), Code::other,
                 "{} on rank {}", weight->name, all.rank());
      }
    }
    KF_CHECK(stacks == 6, Code::other, "{} stacks", stacks);
  });
}
