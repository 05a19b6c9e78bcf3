// train.compile_model = false takes the plain twin of every fused piece: training goes the same way.

#include <ATen/ATen.h>

#include "moe_model.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

constexpr std::int64_t kUpdates = 20;

struct Run {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

Run train(config::Config config, bool fused) {
  config.train.compile_model = fused;
  config.train.loss_fn = "fused_linear_cross_entropy";
  config.train.ce_chunk_size = 11;
  config.train.z_loss_weight = 1e-3;
  Bench bench(config);
  FixedLoader data(random_tokens(8, 32, 3), random_tokens(8, 32, 4), 4);
  Run run;
  for (std::int64_t step = 0; step < kUpdates; ++step) {
    run.losses.push_back(bench.step(data, step, 1e-3).loss);
  }
  run.weights = bench.masters();
  return run;
}

config::Config dense() {
  config::Config c = tiny_config();
  c.model.qk_norm = true;
  c.model.layer_pattern = {"local", "global"};
  c.model.window = 9;
  return c;
}

config::Config experts() {
  config::Config c = moe_config();
  c.model.moe_shared_experts = 1;
  c.model.moe_router = "sigmoid";  // weights that a routing close to a tie does not throw about
  return c;
}

config::Config latent() {
  config::Config c = tiny_config();
  c.model.attention = "mla";
  c.model.n_kv_heads = 4;
  c.model.mla_q_rank = 12;
  c.model.mla_kv_rank = 16;
  c.model.mla_nope_dim = 8;
  c.model.mla_rope_dim = 4;
  c.model.mla_v_dim = 8;
  c.model.rope_layout = "interleaved";
  return c;
}

}  // namespace

TEST_CASE("twins: twenty updates with fused pieces are those of their plain twins", "[twins]") {
  const auto [name, config] =
      GENERATE(table<const char*, config::Config>({{"dense", dense()}, {"experts", experts()}, {"latent", latent()}}));
  CAPTURE(name);
  const Run fused = train(config, true), plain = train(config, false);
  // Sums in another order differ by some 1e-7 of an update; Adam divides small gradients by their own size, so that their noise grows.
  for (std::size_t step = 0; step < fused.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(fused.losses[step] == Approx(plain.losses[step]).epsilon(step == 0 ? 2e-6 : 1e-4));
  }
  for (std::size_t i = 0; i < fused.weights.size(); ++i) {
    CHECK((fused.weights[i] - plain.weights[i]).norm().item<double>() < 2e-3 * plain.weights[i].norm().item<double>() + 1e-6);
  }
  CHECK(fused.losses.back() < 0.98 * fused.losses.front());  // and it learns
}

TEST_CASE("twins: the plain twins really are others", "[twins]") {
  // The same numbers to the last bit everywhere would mean that the key does nothing.
  CHECK_FALSE(bitwise_equal(train(dense(), true).weights, train(dense(), false).weights));
  CHECK_FALSE(bitwise_equal(train(experts(), true).weights, train(experts(), false).weights));
}

}  // namespace kf::test
