// Activation checkpointing changes no bit.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"
#include "model/forward.h"
#include "model/observe.h"
#include "model/recompute/kept_results.h"
#include "model/recompute/recompute.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

struct Outcome {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> after;  // weights and buffers
};

Outcome run(const config::Config& config, bool packed) {
  Bench bench(config);
  const at::Tensor tokens = random_tokens(2, 32, 3);
  Batch batch = make_batch(tokens, random_tokens(2, 32, 4));
  if (packed) {
    batch.doc_ids = at::arange(32).floor_divide(9).expand({2, 32}).contiguous();
  }
  FixedLoader data({batch});
  Outcome out;
  const StepResult result = bench.step(data, 3, 0.0, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      out.gradients.push_back(parameter->gradient().defined() ? parameter->gradient().clone() : at::zeros({0}));
    }
  });
  out.loss = result.loss;
  out.after = bench.masters();
  return out;
}

/// The same by what a layer computes where results are kept: its formula, not one node (model/layer/one_node.h).
Outcome run_formulas(const config::Config& config, bool packed) {
  const Observation look(std::make_shared<Module>(), [](const at::Tensor&, const at::Tensor&) { return at::Tensor(); });
  return run(config, packed);
}

/// Whether a job keeps results of operators.
bool keeps_results(const config::TrainConfig& train) { return !recompute_policy(train, 0).kept.empty(); }

/// The job without recomputation, and with it.
std::pair<Outcome, Outcome> both_ways(const config::Config& config, bool packed) {
  config::Config without = config;
  without.train.activation_checkpointing = "none";
  if (keeps_results(config.train)) {  // a branch that is not run again would be one node
    return {run_formulas(without, packed), run_formulas(config, packed)};
  }
  return {run(without, packed), run(config, packed)};
}

}  // namespace

TEST_CASE("recompute: no bit of loss or gradient changes, whatever is kept", "[recompute]") {
  struct Mode {
    const char* kind;
    std::vector<std::string> save;
    std::int64_t every = 1;
  };
  const Mode mode =
      GENERATE(Mode{"full", {}}, Mode{"full", {}, 2}, Mode{"selective", {}}, Mode{"selective", {"attention"}}, Mode{"selective", {"mlp"}},
               Mode{"selective", {"at::mm"}}, Mode{"selective", {"mlp", "mm"}}, Mode{"minimal", {}},
               Mode{"save_dot_with_context_except_mlp", {}}, Mode{"selective", {"q", "up", "context"}}, Mode{"selective", {"mlp", "qkv"}});
  const std::string placement = GENERATE("pre", "parallel", "parallel2");
  const bool packed = GENERATE(true, false);
  CAPTURE(mode.kind, mode.save, placement, packed);
  config::Config config = tiny_config();
  config.model.norm_placement = placement;
  config.model.dropout_resid = 0.1;
  config.model.dropout_attn = packed ? 0.1 : 0.0;
  if (placement != "pre") {
    config.train.frozen = {"token_embedding.*"};  // the first block's input needs no gradient
  }
  config.train.activation_checkpointing = mode.kind;
  config.train.remat_save = mode.save;
  config.train.remat_every = mode.every;
  const auto [plain, redone] = both_ways(config, packed);
  CHECK(plain.loss == redone.loss);
  CHECK(bitwise_equal(plain.gradients, redone.gradients));
}

TEST_CASE("recompute: with experts no bit changes either: not of gradients, nor of loads and selection biases", "[recompute]") {
  struct Mode {
    const char* kind;
    std::vector<std::string> save;
    std::int64_t every = 1;
  };
  const Mode mode =
      GENERATE(Mode{"full", {}}, Mode{"full", {}, 2}, Mode{"selective", {}}, Mode{"selective", {"attention"}}, Mode{"selective", {"mlp"}},
               Mode{"selective", {"at::mm"}}, Mode{"minimal", {}}, Mode{"selective", {"up", "down"}});
  const std::string router = GENERATE("softmax_topk", "sigmoid");
  const bool fused = GENERATE(true, false);
  const double dropout = GENERATE(0.0, 0.1);
  CAPTURE(mode.kind, mode.save, router, fused, dropout);
  config::Config config = tiny_config();
  config.train.compile_model = fused;
  config.model.num_experts = 4;
  config.model.moe_top_k = 2;
  config.model.moe_ffn_dim = 16;
  config.model.moe_shared_experts = 1;
  config.model.moe_first_dense = 1;
  config.model.n_layers = 3;
  config.model.moe_router = router;
  config.model.moe_bias_rule = router == "sigmoid" ? "sign" : "auto";
  config.model.moe_capacity_factor = router == "sigmoid" ? 0 : 1;
  config.model.moe_router_z_loss_weight = 0.01;
  config.model.moe_gradient_scale = true;
  config.model.dropout_resid = dropout;
  config.model.dropout_attn = dropout;
  config.train.activation_checkpointing = mode.kind;
  config.train.remat_save = mode.save;
  config.train.remat_every = mode.every;
  const auto [plain, redone] = both_ways(config, false);
  CHECK(plain.loss == redone.loss);
  CHECK(bitwise_equal(plain.gradients, redone.gradients));
  CHECK(bitwise_equal(plain.after, redone.after));  // biases moved once
}

TEST_CASE("recompute: latent attention and every placement of norms, too", "[recompute]") {
  config::Config config = tiny_config();
  config.model.attention = "mla";
  config.model.n_kv_heads = 4;
  config.model.mla_q_rank = 12;
  config.model.mla_kv_rank = 16;
  config.model.mla_nope_dim = 8;
  config.model.mla_rope_dim = 4;
  config.model.mla_v_dim = 8;
  config.model.norm_placement = GENERATE("pre", "sandwich", "parallel2");
  config.train.activation_checkpointing = GENERATE("full", "selective");
  const auto [plain, redone] = both_ways(config, true);
  CHECK(plain.loss == redone.loss);
  CHECK(bitwise_equal(plain.gradients, redone.gradients));
}

TEST_CASE("recompute: full runs everything twice, kept operators run once", "[recompute]") {
  int runs = 0;
  const at::Tensor weight = at::randn({4, 4}, at::detail::createCPUGenerator(1)).set_requires_grad(true);
  const at::Tensor x = at::randn({3, 4}, at::detail::createCPUGenerator(2)).set_requires_grad(true);
  const auto body = [&](const at::Tensor& in, const ForwardContext&) {
    ++runs;
    return at::tanh(at::mm(in, weight));
  };
  torch::autograd::backward({body(x, {}).sum()}, {});
  const at::Tensor expected = weight.grad().clone();
  for (const bool keep : {false, true}) {
    weight.mutable_grad() = at::Tensor();
    runs = 0;
    const at::Tensor y = recompute({body, keep ? std::vector<std::string>{"aten::mm"} : std::vector<std::string>{}}, x, {});
    CHECK(runs == 1);
    torch::autograd::backward({y.sum()}, {});
    CHECK(runs == 2);
    CHECK(at::equal(weight.grad(), expected));
  }
  // What is kept really is what the second run reads.
  weight.mutable_grad() = at::Tensor();
  KeptResults kept({"aten::mm"});
  at::Tensor first;
  {
    const KeptResults::Scope scope(kept, true);
    first = at::mm(x.detach(), weight.detach());
  }
  const KeptResults::Scope scope(kept, false);
  CHECK(at::mm(x.detach() * 2, weight.detach()).is_same(first));
  CHECK_THROWS_WITH(at::mm(x.detach(), weight.detach()), Catch::Contains("more of the kept operators"));
}

TEST_CASE("recompute: losses that are left beside the result carry their gradients, and random numbers are drawn again", "[recompute]") {
  const at::Tensor x = at::randn({5}, at::detail::createCPUGenerator(2)).set_requires_grad(true);
  const auto body = [](const at::Tensor& in, const ForwardContext& context) {
    const at::Tensor noise = at::rand({5});
    ExpertsRecord record;
    record.balance = (in * in * noise).sum();
    context.results->experts.push_back(record);
    return in * noise;
  };
  const auto gradient = [&](bool redo) {
    x.mutable_grad() = at::Tensor();
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_current_seed(7);
    ForwardResults results;
    ForwardContext context;
    context.results = &results;
    const at::Tensor y = redo ? recompute({body, {}}, x, context) : body(x, context);
    REQUIRE(results.experts.size() == 1);
    torch::autograd::backward({y.sum() + 3 * results.experts.front().balance}, {});
    CHECK(results.experts.size() == 1);  // backward runs the body again, and leaves nothing
    return x.grad().clone();
  };
  const at::Tensor expected = gradient(false);
  CHECK(at::equal(gradient(true), expected));
}

TEST_CASE("recompute: named results are kept where their name is given, and only there", "[recompute]") {
  const at::Tensor weight = at::eye(4), x = at::ones({3, 4});
  const auto product = [&](const char* name) { return named_result(name, [&] { return at::mm(x, weight); }); };
  KeptResults kept({"#q", "#context"});
  at::Tensor q, k;
  {
    const KeptResults::Scope scope(kept, true);
    q = product("q");
    k = product("k");
  }
  const KeptResults::Scope scope(kept, false);
  CHECK(product("q").is_same(q));
  CHECK_FALSE(product("k").is_same(k));
}

TEST_CASE("recompute: the named policies keep what MaxText's keep", "[recompute]") {
  using Names = std::vector<std::string>;
  const auto kept = [](const std::string& policy) {
    config::TrainConfig train;
    train.activation_checkpointing = policy;
    const RecomputePolicy out = recompute_policy(train, 0);
    CHECK(out.block);
    return out.kept;
  };
  const Names qkv{"#q", "#k", "#v", "#kv"};
  const auto with = [&](const Names& more) {
    Names all = qkv;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  CHECK(kept("full").empty());
  CHECK(kept("save_out_proj") == Names{"#out"});
  CHECK(kept("save_qkv_proj") == qkv);
  CHECK(kept("save_dot_except_mlp") == with({"#out"}));
  CHECK(kept("save_dot_except_mlpwi") == with({"#out", "#down"}));
  CHECK(kept("save_dot_with_context_except_mlp") == with({"#context", "#out"}));
  CHECK(kept("minimal") == with({"#out", "#gate", "#up", "#down"}));
}

TEST_CASE("recompute: every layer computes its products under the names that can be kept", "[recompute]") {
  // The second run of a block is answered for each name: so many results are kept as the block has such products.
  const auto results = [](const config::Config& config, const std::string& name) {
    const auto model = tiny_model(config);
    KeptResults kept({"#" + name});
    std::size_t count = 0;
    const at::NoGradGuard no_grad;
    ForwardContext context;
    {
      const KeptResults::Scope scope(kept, true);
      model->forward(random_tokens(1, 8, 3), context);
    }
    const KeptResults::Scope scope(kept, false);
    for (;; ++count) {
      try {
        kept.next();
      } catch (const Error&) {
        return count;
      }
    }
  };
  const config::Config dense = tiny_config();
  const auto layers = static_cast<std::size_t>(dense.model.n_layers);
  for (const char* name : {"q", "k", "v", "context", "out", "gate", "up", "down"}) {
    CAPTURE(name);
    CHECK(results(dense, name) == layers);
  }
  config::Config latent = dense;
  latent.model.attention = "mla";
  latent.model.n_kv_heads = latent.model.n_heads;
  latent.model.mla_q_rank = 12;
  latent.model.mla_kv_rank = 16;
  latent.model.mla_nope_dim = 8;
  latent.model.mla_rope_dim = 4;
  latent.model.mla_v_dim = 12;  // as wide as the keys: else LibTorch's attention is two products, and both are kept
  for (const char* name : {"q_a", "q", "kv_a", "kv", "context", "out"}) {
    CAPTURE(name);
    CHECK(results(latent, name) == layers);
  }
}

TEST_CASE("recompute: an unknown operator is an error by name", "[recompute]") {
  config::TrainConfig train;
  train.activation_checkpointing = "selective";
  train.remat_save = {"at::mmm"};
  CHECK_THROWS_WITH(recompute_policy(train, 0), Catch::Contains("train.remat_save: LibTorch has no operator 'at::mmm'"));
}

}  // namespace kf::test
