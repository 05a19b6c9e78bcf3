// Ranks that share the positions of sequences equal one.

#include "core/error.h"
#include "equal_ranks.h"
#include "parallel/sequence_cut.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

/// A layout with a way for keys and values to come, and an order of positions.
struct Way {
  Layout layout;
  const char* method;
  const char* order;
};

Layout layout(std::int64_t cp, std::int64_t shards = 1, std::int64_t stage = 1, std::int64_t replicas = 1) {
  return {{1, replicas, shards, cp, 1, 1}, stage};
}

/// Rows of 16 positions: three ranks have 6, 5 and 5 of them in either order.
const std::vector<Way>& two_ways() {
  static const std::vector<Way> ways{{layout(2), "ring", "zigzag"}, {layout(3), "all_gather", "contiguous"}};
  return ways;
}

const std::vector<Way>& all_ways() {
  static const std::vector<Way> ways{{layout(2), "ring", "zigzag"},       {layout(3), "ring", "contiguous"},
                                     {layout(2, 2, 3), "ring", "zigzag"}, {layout(2, 2, 1), "all_gather", "contiguous"},
                                     {layout(3), "all_gather", "zigzag"}, {layout(2, 1, 3, 2), "all_gather", "zigzag"},
                                     {layout(4, 1, 2), "ring", "zigzag"}};
  return ways;
}

config::Config by(config::Config c, const Way& way) {
  c.distributed.cp_method = way.method;
  c.distributed.cp_order = way.order;
  return c;
}

void check(const config::Config& config, const std::vector<Way>& ways = two_ways(), const Trial& trial = {}) {
  const Outcome one = train_alone(config, trial);
  for (const Way& way : ways) {
    INFO(way.layout.degrees.cp << " ranks, " << way.method << ", " << way.order << ", dp_shard " << way.layout.degrees.dp_shard);
    check_near(train_on(way.layout, by(config, way), trial), one, trial);
  }
}

}  // namespace

TEST_CASE("context parallel: every position has its place, and causal work is even in zigzag order", "[context_parallel]") {
  const SequenceCut cut(16, 2, SequenceOrder::zigzag);
  CHECK((cut.pieces(0) == std::vector<Span>{{0, 4}, {12, 4}}));
  CHECK((cut.pieces(1) == std::vector<Span>{{4, 4}, {8, 4}}));
  const SequenceCut uneven(10, 3, SequenceOrder::contiguous);
  CHECK(uneven.rows() == std::vector<std::int64_t>{4, 3, 3});
  CHECK((uneven.pieces(2) == std::vector<Span>{{7, 3}}));
  CHECK_THROWS_WITH(SequenceCut(3, 2, SequenceOrder::zigzag), Contains("sequences of 3 positions cannot be cut into the 4 pieces"));
}

TEST_CASE("context parallel: ranks equal one, dense, by every way, with data ranks beside them", "[context_parallel]") {
  config::Config c = small_config();
  SECTION("plain, with accumulation") {
    c.train.grad_accum_steps = 2;
    check(c, all_ways());
  }
  SECTION("packed documents") { check(c, all_ways(), {true}); }
}

TEST_CASE("context parallel: ranks equal one whatever attention does", "[context_parallel]") {
  config::Config c = small_config();
  const bool packed = GENERATE(false, true);
  INFO("packed " << packed);
  SECTION("windows, one kv head") {
    c.model.n_kv_heads = 1;
    c.model.layer_pattern = {"local", "global"};
    c.model.window = 5;
  }
  SECTION("chunks, temperature, norms behind the rotation") {
    c.model.layer_pattern = {"chunk", "global"};
    c.model.chunk = 6;
    c.model.attn_temp_tuning = true;
    c.model.attn_temp_floor = 4;
    c.model.attn_temp_layers = "all";
    c.model.qk_norm = true;
    c.model.qk_norm_late = true;
  }
  SECTION("alibi, caps, sinks") {
    c.model.pos_embedding = "alibi";
    c.model.attn_softcap = 5;
    c.model.attn_sink = true;
  }
  SECTION("latent attention, learned positions") {
    c.model.attention = "mla";
    c.model.n_kv_heads = 4;
    c.model.mla_kv_rank = 12;
    c.model.mla_q_rank = 10;
    c.model.mla_nope_dim = 6;
    c.model.mla_rope_dim = 4;
    c.model.mla_v_dim = 5;
  }
  SECTION("angles that follow the length, formula alone") {
    c.model.rope_scaling = "dynamic";
    c.model.rope_factor = 2;
    c.model.rope_orig_len = 8;
    c.model.sdpa_backend = "math";
  }
  SECTION("learned positions, gates, recomputation") {
    c.model.pos_embedding = "learned";
    c.model.attn_gate = "head";
    c.train.activation_checkpointing = "full";
  }
  check(c, two_ways(), {packed});
}

TEST_CASE("context parallel: ranks equal one with losses that look at more than the next token", "[context_parallel]") {
  config::Config c = small_config();
  SECTION("multi-token prediction, of documents") {
    c.model.mtp_layers = 2;
    c.train.mtp_loss_weight = 0.3;
    check(c, two_ways(), {true});
  }
  SECTION("experts with a balance loss, z-loss, the head in chunks") {
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_aux_loss_weight = 0.01;
    c.model.moe_router_z_loss_weight = 1e-3;
    c.train.z_loss_weight = 1e-3;
    c.train.loss_fn = "fused_linear_cross_entropy";
    check(c);
  }
  SECTION("queries that are clipped") {
    c.optimizer.qk_clip = true;
    c.optimizer.qk_clip_tau = 0.01;
    check(c);
  }
  SECTION("curvature, for which nothing goes round a ring") {
    c.optimizer.name = "sophia_h";
    c.optimizer.eps = 1e-2;  // see data_parallel_test.cpp
    check(c, two_ways(), {false, 1e-4});
  }
}

TEST_CASE("context parallel: ranks equal one with ranks of the other axes beside them", "[context_parallel]") {
  config::Config c = small_config();
  c.model.vocab_size = kTinyVocab + 1;  // tp divides it
  SECTION("tp, which divides the heads of alibi, caps and sinks") {
    c.model.pos_embedding = "alibi";
    c.model.attn_softcap = 5;
    c.model.attn_sink = true;
    check(c, {{{{1, 1, 1, 2, 1, 2}, 1}, "ring", "zigzag"}, {{{1, 1, 1, 3, 1, 2}, 3}, "all_gather", "contiguous"}}, {true});
  }
  SECTION("tp, latent attention and clipped queries") {
    c.model.attention = GENERATE("mla", "gqa");
    if (c.model.attention == "mla") {
      c.model.n_kv_heads = 4;
      c.model.mla_kv_rank = 12;
      c.model.mla_nope_dim = 6;
      c.model.mla_rope_dim = 4;
      c.model.mla_v_dim = 5;
    } else {
      c.optimizer.qk_clip = true;
      c.optimizer.qk_clip_tau = 0.01;
    }
    Trial trial;
    trial.tolerance = 1e-5;  // as of all layouts of several axes (layouts_test.cpp): 1e-6 in each of ten steps
    check(c, {{{{1, 1, 1, 2, 1, 2}, 3}, "ring", "zigzag"}}, trial);
  }
  SECTION("pp, of documents, with accumulation and tokens further on") {
    c.train.grad_accum_steps = 2;
    c.model.mtp_layers = 1;
    c.train.mtp_loss_weight = 0.3;
    check(c, {{{{2, 1, 1, 2, 1, 1}, 1}, "ring", "zigzag"}, {{{2, 1, 1, 3, 1, 1}, 1}, "all_gather", "contiguous"}}, {true});
  }
  SECTION("ep, which routes the tokens of parts") {
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_aux_loss_weight = 0.01;
    check(c, {{{{1, 1, 1, 2, 2, 1}, 3}, "ring", "zigzag"}, {{{1, 1, 1, 3, 2, 1}, 1}, "all_gather", "contiguous"}});
  }
  SECTION("dp and tp, dp and pp") {
    c.train.grad_accum_steps = 2;
    check(c, {{{{1, 1, 2, 2, 1, 2}, 3}, "ring", "zigzag"}, {{{2, 1, 2, 2, 1, 1}, 1}, "ring", "contiguous"}});
  }
  SECTION("muon, which takes whole matrices") {
    c.optimizer.name = "muon";
    check(c, {{{{1, 1, 2, 2, 1, 1}, 3}, "ring", "zigzag"}});
  }
}

TEST_CASE("context parallel: reruns have the same bits, and bf16 stays near", "[context_parallel]") {
  config::Config c = small_config();
  const Way way = GENERATE(Way{layout(2, 2, 3), "ring", "zigzag"}, Way{layout(3), "all_gather", "zigzag"});
  check_repeats(way.layout, by(c, way), {true});
  Trial trial;
  trial.compute = at::kBFloat16;
  const Outcome one = train_alone(c, trial), many = train_on(way.layout, by(c, way), trial);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(1.0 / 128));  // a unit of bf16 in the last place
  }
}
