// Axes together: what two and three of them make of a job equals one rank. Each axis alone has a file of its own.

#include "equal_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// A small job of two micro-batches, with a vocabulary, widths and heads that every layout below can divide.
config::Config job() {
  config::Config c = small_config();
  c.model.vocab_size = 100;
  c.train.grad_accum_steps = 2;
  return c;
}

config::Config with_experts() {
  config::Config c = job();
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  c.model.moe_shared_experts = 1;
  c.model.moe_aux_loss_weight = 0.01;
  c.model.moe_router_z_loss_weight = 1e-3;
  return c;
}

config::Config with_latents() {
  config::Config c = job();
  c.model.attention = "mla";
  c.model.mla_q_rank = 16;
  c.model.mla_kv_rank = 8;
  c.model.mla_nope_dim = 8;
  c.model.mla_rope_dim = 4;
  c.model.mla_v_dim = 8;
  return c;
}

/// An update moves a weight by lr g / (|g| + eps) or less: where g is 0 but for rounding, a difference of 1e-8 (of sums
/// in another order) is one of lr 1e-8 / eps = 1e-6 of a weight, in each of ten steps.
Trial trial(bool packed = false) {
  Trial out;
  out.packed = packed;
  out.tolerance = 1e-5;
  return out;
}

}  // namespace

// Degrees: pp, dp_replicate, dp_shard, cp, ep, tp.

TEST_CASE("layouts: dense models", "[layouts]") {
  check_equal({{{2, 1, 1, 1, 1, 2}, 1},
               {{1, 1, 1, 2, 1, 2}, 1},
               {{1, 2, 1, 1, 1, 2}, 1},
               {{2, 1, 2, 1, 1, 2}, 3},
               {{1, 1, 2, 2, 1, 2}, 3},
               {{2, 1, 1, 2, 1, 2}, 1},
               {{1, 2, 2, 1, 1, 2}, 2}},
              job(), trial());
}

TEST_CASE("layouts: experts", "[layouts]") {
  check_equal({{{2, 1, 1, 1, 1, 2}, 1},
               {{1, 1, 2, 1, 2, 2}, 3},
               {{2, 1, 1, 1, 2, 2}, 1},
               {{1, 1, 2, 2, 2, 1}, 3},
               {{1, 1, 1, 2, 2, 2}, 1},
               {{2, 1, 2, 1, 2, 1}, 2}},
              with_experts(), trial());
}

TEST_CASE("layouts: latents, packed documents", "[layouts]") {
  check_equal({{{1, 1, 1, 2, 1, 2}, 1}, {{2, 1, 2, 2, 1, 1}, 2}, {{1, 1, 2, 1, 1, 4}, 3}}, with_latents(), trial(true));
}

TEST_CASE("layouts: what two stages hold, adapters, and optimizers of whole matrices", "[layouts]") {
  config::Config c = job();
  SECTION("tied embeddings") {
    c.model.tie_embeddings = true;
    check_equal({{{2, 1, 1, 1, 1, 2}, 1}, {{2, 1, 2, 1, 1, 2}, 3}}, c, trial());
  }
  SECTION("layers that look ahead") {
    c.model.mtp_layers = 1;
    c.train.mtp_loss_weight = 0.3;
    check_equal({{{2, 1, 2, 1, 1, 2}, 1}}, c, trial());
  }
  SECTION("adapters") {
    c.adapter.name = "lora";
    c.adapter.rank = 2;
    c.adapter.targets = {"q_proj", "v_proj", "o_proj", "down_proj"};
    check_equal({{{1, 1, 2, 2, 1, 2}, 3}}, c, trial());
  }
  SECTION("muon") {
    c.optimizer.name = "muon";
    check_equal({{{2, 1, 2, 1, 1, 2}, 3}, {{1, 2, 2, 1, 1, 2}, 2}}, c, trial());
  }
}
