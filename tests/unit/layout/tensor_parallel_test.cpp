// Ranks that divide the numbers of the layers equal one.

#include "equal_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Ranks of dp_shard and of tp, and the stage.
Layout layout(std::int64_t tp, std::int64_t shards = 1, std::int64_t stage = 1) { return {{1, 1, shards, 1, 1, tp}, stage}; }

/// tiny_config with a vocabulary that 4 divides.
config::Config divisible() {
  config::Config c = small_config();
  c.model.vocab_size = 100;
  return c;
}

/// On 2 and 4 ranks of tp, and with weights and moments spread over two more.
void check_all(const config::Config& config, const Trial& trial = {}) {
  check_equal({layout(2), layout(4), layout(2, 2, 1), layout(2, 2, 3)}, config, trial);
}

/// On 2 and 4 ranks of tp.
void check_tp(const config::Config& config, const Trial& trial = {}) { check_equal({layout(2), layout(4)}, config, trial); }

}  // namespace

TEST_CASE("tensor parallel: ranks equal one, dense, with a split sequence and without", "[tensor_parallel]") {
  config::Config c = divisible();
  c.distributed.sequence_parallel = GENERATE(true, false);
  CAPTURE(c.distributed.sequence_parallel);
  check_all(c);
}

TEST_CASE("tensor parallel: reruns are equal to the bit", "[tensor_parallel]") { check_repeats(layout(2, 2, 3), divisible()); }

TEST_CASE("tensor parallel: ranks equal one, every attention", "[tensor_parallel]") {
  config::Config c = divisible();
  config::ModelConfig& m = c.model;
  SECTION("one kv head for all ranks, biases, sinks, gates") {
    m.n_kv_heads = 1;
    m.attn_bias = "all";
    m.attn_sink = true;
    m.attn_gate = GENERATE("head", "element");
    check_tp(c);
  }
  SECTION("kv heads that ranks do not divide") {
    m.dim = 48;
    m.n_heads = 12;
    m.n_kv_heads = 6;
    m.v_norm = "scaled";
    check_tp(c);
  }
  SECTION("norms of queries and keys") {
    m.qk_norm = true;
    m.qk_norm_kind = GENERATE("head", "full", "each", "l2");
    m.n_kv_heads = GENERATE(1, 4);
    m.qk_norm_type = m.qk_norm_kind == "l2" ? "rmsnorm" : GENERATE("rmsnorm", "layernorm");
    CAPTURE(m.qk_norm_kind, *m.n_kv_heads, m.qk_norm_type);
    check_equal({layout(2)}, c);
  }
  SECTION("alibi, caps of scores and logits, clipped projections") {
    m.pos_embedding = "alibi";
    m.attn_softcap = 5;
    m.final_logit_softcap = 10;
    m.attn_qkv_clip = 1;
    check_tp(c);
  }
  SECTION("latents") {
    m.attention = "mla";
    m.mla_q_rank = GENERATE(0, 16);
    m.mla_kv_rank = 8;
    m.mla_nope_dim = 8;
    m.mla_rope_dim = 4;
    m.mla_v_dim = 8;
    m.attn_bias = "all";
    c.distributed.sequence_parallel = GENERATE(true, false);
    check_tp(c);
  }
  SECTION("queries that are clipped") {
    c.optimizer.qk_clip = true;
    c.optimizer.qk_clip_tau = 0.01;
    check_tp(c);
  }
}

TEST_CASE("tensor parallel: ranks equal one, every embedding, head and loss", "[tensor_parallel]") {
  config::Config c = divisible();
  SECTION("tied, learned positions, norm of the embedding") {
    c.model.tie_embeddings = true;
    c.model.pos_embedding = "learned";
    c.model.embed_norm = true;
    check_all(c);
  }
  SECTION("z-loss, chunks, a scale") {
    c.train.loss_fn = GENERATE("cross_entropy", "chunked_cross_entropy", "fused_linear_cross_entropy");
    c.train.ce_chunk_size = c.train.loss_fn == "cross_entropy" ? 0 : 48;
    c.train.z_loss_weight = 1e-3;
    c.model.logit_scale = 0.5;
    c.model.final_logit_softcap = 10;
    check_tp(c);
  }
  SECTION("a head with a bias") {
    c.model.head_bias = true;
    check_tp(c);
  }
  SECTION("layers that look ahead") {
    c.model.mtp_layers = 2;
    c.train.mtp_loss_weight = 0.3;
    check_tp(c);
  }
}

TEST_CASE("tensor parallel: ranks equal one, every block", "[tensor_parallel]") {
  config::Config c = divisible();
  config::ModelConfig& m = c.model;
  SECTION("placements of norms") {
    m.norm_placement = GENERATE("post", "sandwich", "parallel", "parallel2");
    check_equal({layout(2)}, c);
  }
  SECTION("layernorm, plain mlp, biases, a number behind each layer") {
    m.norm_type = "layernorm";
    m.activation = "gelu";
    m.mlp_bias = true;
    m.layer_scalar = true;
    check_tp(c);
  }
  SECTION("a learned activation") {
    m.activation = "xielu";
    check_tp(c);
  }
  SECTION("dropout everywhere") {
    m.dropout_embed = m.dropout_resid = m.dropout_attn = 0.2;
    c.distributed.sequence_parallel = GENERATE(true, false);
    check_tp(c);
  }
  SECTION("recomputed blocks, documents, three micro-batches") {
    c.train.activation_checkpointing = "full";
    c.train.grad_accum_steps = 3;
    check_all(c, {true});
  }
}

TEST_CASE("tensor parallel: ranks equal one, experts", "[tensor_parallel]") {
  config::Config c = divisible();
  config::ModelConfig& m = c.model;
  m.num_experts = 4;
  m.moe_top_k = 2;
  m.moe_aux_loss_weight = 0.01;
  m.moe_router_z_loss_weight = 1e-3;
  m.moe_impl = GENERATE("grouped", "loop");
  c.distributed.sequence_parallel = GENERATE(true, false);
  CAPTURE(m.moe_impl, c.distributed.sequence_parallel);
  SECTION("shared ones behind a gate") {
    m.moe_shared_experts = 2;
    m.moe_shared_gate = true;
    m.mlp_bias = true;
    check_equal({layout(2), layout(2, 2, 3)}, c);
  }
  SECTION("routed ones alone, recomputed") {
    c.train.activation_checkpointing = "full";
    check_equal({layout(4)}, c);
  }
  SECTION("narrower ones") {
    m.moe_input_dim = 16;
    m.moe_shared_experts = GENERATE(0, 1);
    check_equal({layout(2)}, c);
  }
  SECTION("beside a dense layer") {
    m.moe_beside_dense = true;
    m.moe_shared_experts = GENERATE(0, 1);
    check_equal({layout(2)}, c);
  }
  SECTION("tokens that travel to them, of an odd number of positions") {
    m.moe_capacity_factor = 1;
    check_equal({{{1, 1, 1, 2, 2, 2}, 1}}, c);
  }
}

TEST_CASE("tensor parallel: ranks equal one, adapters and frozen weights", "[tensor_parallel]") {
  config::Config c = divisible();
  SECTION("adapters") {
    c.adapter.name = "lora";
    c.adapter.rank = 2;
    c.adapter.dropout = 0.1;
    c.adapter.targets = {"q_proj", "k_proj", "o_proj", "up_proj", "down_proj"};
    c.model.n_kv_heads = GENERATE(1, 4);
    check_tp(c);
  }
  SECTION("frozen") {
    c.train.frozen = {"token_embedding.*", "layers.0.*"};
    check_all(c);
  }
}

TEST_CASE("tensor parallel: ranks equal one with optimizers that need whole weights", "[tensor_parallel]") {
  struct Case {
    std::string name;
    double lr = 1e-3;
    double eps = 1e-5;
  };
  const Case one = GENERATE(Case{"muon"}, Case{"adam_mini"}, Case{"kron"}, Case{"scion", 1e-7}, Case{"soap", 1e-3, 1e-3},
                            Case{"sophia_h", 1e-4, 1e-2});  // see data_parallel_test.cpp
  INFO(one.name);
  config::Config c = divisible();
  c.optimizer.name = one.name;
  c.optimizer.eps = one.eps;
  if (one.name == "soap") {  // as in data_parallel_test.cpp
    config::PartOptions options;
    options["max_dim"] = config::Node(std::int64_t{16});
    options["frequency"] = config::Node(std::int64_t{10});
    c.parts["optimizer.soap"] = options;
  }
  Trial trial;
  trial.lr = one.lr;
  check_equal({layout(2), layout(2, 2, 3)}, c, trial);
}

TEST_CASE("tensor parallel: ranks estimate the curvature of one rank", "[tensor_parallel]") {
  config::Config c = divisible();
  c.optimizer.name = "sophia_h";
  c.optimizer.eps = 1e-2;
  c.distributed.sequence_parallel = GENERATE(true, false);
  CAPTURE(c.distributed.sequence_parallel);
  Trial trial;
  trial.lr = 1e-4;
  SECTION("biases, tied embeddings, norms of heads") {
    c.model.attn_bias = "all";
    c.model.mlp_bias = true;
    c.model.tie_embeddings = true;
    c.model.qk_norm = true;
    c.model.n_kv_heads = 1;
  }
  SECTION("experts, with their losses") {
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_aux_loss_weight = 0.01;
    c.model.moe_shared_experts = 1;
    c.model.moe_shared_gate = true;
  }
  SECTION("divided sequences, too") { c.train.loss_fn = "fused_linear_cross_entropy"; }
  check_equal({layout(2), {{1, 1, 1, 2, 1, 2}, 1}}, c, trial);
}

TEST_CASE("tensor parallel: what an optimizer adds up over all weights is added up once", "[tensor_parallel]") {
  config::Config c = divisible();
  c.optimizer.update_norm_window = 4;
  c.optimizer.update_norm_sigma = 0.1;
  c.optimizer.update_rms_clip = GENERATE(0.0, 0.5);
  check_equal({layout(2), layout(2, 2, 3)}, c);
}

TEST_CASE("tensor parallel: bf16 tracks fp32", "[tensor_parallel]") {
  // A step rounds to 8 bits: losses of ten steps stay within a few units of the last place of bf16 numbers (2^-8).
  const config::Config c = divisible();
  Trial trial;
  trial.compute = at::kBFloat16;
  const Outcome one = train_alone(c), many = train_on(layout(2, 2, 3), c, trial);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(1.0 / 256));
  }
}
