// Ranks that share the data, and weights and moments, equal one.

#include "equal_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Ranks of dp_replicate, of dp_shard, and the stage.
Layout layout(std::int64_t replicas, std::int64_t shards, std::int64_t stage) { return {{1, replicas, shards, 1, 1, 1}, stage}; }

void check_equal(const config::Config& config, const Trial& trial = {}) {
  static const std::vector<Layout> layouts{layout(2, 1, 1), layout(1, 2, 1), layout(1, 4, 2), layout(1, 2, 3), layout(2, 2, 3)};
  kf::test::check_equal(layouts, config, trial);
}

}  // namespace

TEST_CASE("data parallel: ranks equal one, dense, with accumulation and recomputation", "[data_parallel]") {
  config::Config c = small_config();
  SECTION("plain") { check_equal(c); }
  SECTION("three micro-batches") {
    c.train.grad_accum_steps = 3;
    check_equal(c);
  }
  SECTION("recomputed blocks") {
    c.train.activation_checkpointing = "full";
    check_equal(c);
  }
  SECTION("tied embeddings") {
    c.model.tie_embeddings = true;
    check_equal(c);
  }
  SECTION("packed documents") { check_equal(c, {true}); }
  SECTION("queries that are clipped; four ranks cut a head of three in the middle") {
    c.model.dim = 48;
    c.model.n_heads = 3;
    c.model.n_kv_heads = GENERATE(1, 3);
    c.model.attn_bias = "qkv";
    c.optimizer.qk_clip = true;
    c.optimizer.qk_clip_tau = 0.01;
    check_equal(c);
  }
  SECTION("z-loss, chunked head") {
    c.train.z_loss_weight = 1e-3;
    c.train.loss_fn = "fused_linear_cross_entropy";
    check_equal(c);
  }
}

TEST_CASE("data parallel: ranks equal one where weights are frozen", "[data_parallel]") {
  config::Config c = small_config();
  c.train.frozen = GENERATE(config::Strings{"token_embedding.*", "layers.0.*"}, config::Strings{"layers.1.mlp.*"});
  check_equal(c);
}

TEST_CASE("data parallel: ranks equal one, experts, with the balance loss of all their tokens", "[data_parallel]") {
  config::Config c = small_config();
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  c.model.moe_aux_loss_weight = 0.01;
  c.model.moe_router_z_loss_weight = 1e-3;
  SECTION("softmax scores") { check_equal(c); }
  SECTION("selection biases") {
    c.model.moe_router = "sigmoid_topk";
    c.model.moe_sequence_aux_loss_weight = 0.01;
    check_equal(c);
  }
}

TEST_CASE("data parallel: ranks equal one with moments in 8 bits, where parts of weights end with a block of 256", "[data_parallel]") {
  config::Config c = small_config();
  c.model.dim = 64;
  c.model.ffn_hidden_dim = 128;
  c.model.vocab_size = 128;
  c.optimizer.state_dtype_m = c.optimizer.state_dtype_v = GENERATE("int8", "fp8");
  CAPTURE(c.optimizer.state_dtype_m);
  // Sums in another order may put a number on the other side between two of 8 bits: that update of that weight is off by a part of itself,
  // which is the rate at most, and the loss by that times its slope, of a norm of about 1.
  check_equal(c, {.tolerance = 1e-3, .loss_share = 1e-3 / 5, .norm_share = 1e-3});
}

TEST_CASE("data parallel: ranks equal one with every native optimizer", "[data_parallel]") {
  // A rate at which a step moves a weight by about 1e-3, or less where an update may turn its sign with the last bit of a number. The eps
  // of SOAP and Sophia is above the noise in the null space of its statistics, and in its curvatures.
  struct Case {
    std::string name;
    double lr = 1e-3;
    double eps = 1e-5;
  };
  const Case one = GENERATE(Case{"adamw"}, Case{"lion"}, Case{"schedule_free_adamw", 8e-4}, Case{"muon"}, Case{"sgdm"}, Case{"mars"},
                            Case{"adopt"}, Case{"adam_mini"}, Case{"kron"}, Case{"cautious_adamw", 3e-4}, Case{"rmsprop", 1e-4},
                            Case{"scion", 1e-7}, Case{"soap", 1e-3, 1e-3}, Case{"sophia_h", 1e-4, 1e-2});
  INFO(one.name);
  config::Config c = small_config();
  c.optimizer.name = one.name;
  c.optimizer.eps = one.eps;
  if (one.name == "soap") {  // statistics of sides longer than the rank of a gradient have any basis of a null space
    config::PartOptions options;
    options["max_dim"] = config::Node(std::int64_t{16});
    options["frequency"] = config::Node(std::int64_t{10});
    c.parts["optimizer.soap"] = options;
  }
  check_equal(c, {false, one.lr});
}

TEST_CASE("data parallel: what an optimizer adds up over all weights is added up over the ranks", "[data_parallel]") {
  config::Config c = small_config();
  c.optimizer.update_norm_window = 4;
  c.optimizer.update_norm_sigma = 0.1;
  c.optimizer.update_rms_clip = GENERATE(0.0, 0.5);
  check_equal(c);
}
