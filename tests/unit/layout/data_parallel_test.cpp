// N ranks equal one: the proof of the shapes. Ranks are threads here; tests/e2e/ranks_test.cpp has processes.

#include <ATen/ATen.h>

#include <cmath>

#include "core/error.h"
#include "model/weight_unit.h"
#include "parallel/thread_ranks.h"
#include "parallel/world.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

constexpr std::int64_t kRows = 8, kLength = 16, kSteps = 10;

/// Eight rows a micro-batch, every world-th of which is this rank's; a third of the labels does not count, most of those of rank 0.
class SharedRows final : public Loader {
 public:
  SharedRows(Share share, bool packed) : share_(share), packed_(packed) {}
  Batch batch(std::int64_t index) override {
    const auto seed = static_cast<std::uint64_t>(index);
    at::Tensor labels = random_tokens(kRows, kLength, 2 * seed + 1);
    labels = labels.masked_fill(labels.lt(kTinyVocab / 4), kIgnore);
    labels[0].fill_(kIgnore);
    Batch all = make_batch(random_tokens(kRows, kLength, 2 * seed), labels);
    if (packed_) {
      all.doc_ids = at::arange(kLength).floor_divide(5 + index % 3).expand({kRows, kLength}).contiguous();
    }
    Batch mine = make_batch(rows(all.tokens), rows(all.labels));
    mine.doc_ids = packed_ ? rows(all.doc_ids) : at::Tensor();
    return mine;
  }
  std::int64_t batches_per_epoch() const override { return 1000; }
  std::string describe() const override { return "rows"; }
  std::string fingerprint() const override { return "rows"; }

 private:
  at::Tensor rows(const at::Tensor& all) const { return all.slice(0, share_.rank, kRows, share_.world).contiguous(); }

  Share share_;
  bool packed_;
};

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<at::Tensor> weights;
};

Outcome train(const config::Config& config, const World& world, bool packed, double lr) {
  Bench bench(config, at::kFloat, world);
  SharedRows data(world.share(), packed);
  Outcome out;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const StepResult result = bench.step(data, step, lr);
    KF_CHECK(result.skipped.empty(), Code::other, "step {}: {}", step, result.skipped);  // Catch2 counts on one thread alone
    out.losses.push_back(result.loss);
    out.norms.push_back(result.grad_norm);
  }
  const WholeWeights whole(*bench.model);
  for (const ParameterPtr& weight : bench.model->parameters()) {
    out.weights.push_back(weight->value.detach().clone());
  }
  return out;
}

struct Layout {
  std::int64_t replicas, shards, stage;
};
constexpr Layout kLayouts[] = {{2, 1, 1}, {1, 2, 1}, {1, 4, 2}, {1, 2, 3}, {2, 2, 3}};

/// What the ranks of a layout come to; on all of them the same.
Outcome train_on(const Layout& layout, config::Config config, bool packed, double lr) {
  config.distributed.zero_stage = layout.stage;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(layout.replicas * layout.shards));
  run_ranks(layout.replicas * layout.shards, [&](Group& all) {
    const World world(all, Mesh({1, layout.replicas, layout.shards, 1, 1, 1}));
    outcomes[static_cast<std::size_t>(all.rank())] = train(config, world, packed, lr);
  });
  for (const Outcome& other : outcomes) {
    CHECK(other.losses == outcomes[0].losses);
    CHECK(bitwise_equal(other.weights, outcomes[0].weights));
  }
  return outcomes[0];
}

/// Sums in another order differ by a few units of fp32 in the last place; ten steps of a small rate carry that on.
void check_equal(const config::Config& config, bool packed = false, double lr = 1e-3, double tolerance = 1e-6) {
  const Outcome one = train(config, World(), packed, lr);
  for (const Layout& layout : kLayouts) {
    INFO("dp_replicate " << layout.replicas << ", dp_shard " << layout.shards << ", zero_stage " << layout.stage);
    const Outcome many = train_on(layout, config, packed, lr);
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      INFO("step " << i + 1);
      CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(1e-6));
      CHECK(many.norms[i] == Approx(one.norms[i]).epsilon(1e-5));
    }
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
      INFO("weight " << i);
      CHECK((many.weights[i] - one.weights[i]).abs().max().item<double>() <= tolerance);
    }
  }
}

config::Config small() {
  config::Config c = tiny_config();
  c.train.seq_len = kLength;
  c.train.batch_size = kRows;
  c.optimizer.eps = 1e-5;  // Adam divides what is 0 but for rounding by itself otherwise: no two orders of summation agree on that
  return c;
}

}  // namespace

TEST_CASE("data parallel: ranks equal one, dense, with accumulation and recomputation", "[data_parallel]") {
  config::Config c = small();
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
  SECTION("packed documents") { check_equal(c, true); }
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
  config::Config c = small();
  c.train.frozen = GENERATE(config::Strings{"token_embedding.*", "layers.0.*"}, config::Strings{"layers.1.mlp.*"});
  check_equal(c);
}

TEST_CASE("data parallel: ranks equal one, experts, with the balance loss of all their tokens", "[data_parallel]") {
  config::Config c = small();
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

TEST_CASE("data parallel: ranks equal one with every native optimizer", "[data_parallel]") {
  // A rate at which a step moves a weight by about 1e-3, or less where an update may turn its sign with the last bit of a number. The eps
  // of SOAP and Sophia is above the noise in the null space of its statistics, and in its curvatures.
  struct Case {
    std::string name;
    double lr = 1e-3;
    double eps = 1e-5;
  };
  const Case one = GENERATE(Case{"adamw"}, Case{"lion"}, Case{"schedule_free_adamw"}, Case{"muon"}, Case{"sgdm"}, Case{"mars"},
                            Case{"adopt"}, Case{"adam_mini"}, Case{"kron"}, Case{"cautious_adamw", 3e-4}, Case{"rmsprop", 1e-4},
                            Case{"scion", 1e-7}, Case{"soap", 1e-3, 1e-3}, Case{"sophia_h", 1e-4, 1e-2});
  INFO(one.name);
  config::Config c = small();
  c.optimizer.name = one.name;
  c.optimizer.eps = one.eps;
  if (one.name == "soap") {  // statistics of sides longer than the rank of a gradient have any basis of a null space
    config::PartOptions options;
    options["max_dim"] = config::Node(std::int64_t{16});
    options["frequency"] = config::Node(std::int64_t{10});
    c.parts["optimizer.soap"] = options;
  }
  check_equal(c, false, one.lr);
}

TEST_CASE("data parallel: what an optimizer adds up over all weights is added up over the ranks", "[data_parallel]") {
  config::Config c = small();
  c.optimizer.update_norm_window = 4;
  c.optimizer.update_norm_sigma = 0.1;
  c.optimizer.update_rms_clip = GENERATE(0.0, 0.5);
  check_equal(c);
}
