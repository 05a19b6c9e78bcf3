// Which table of kernels a job gets, and that its parts compute with nothing else.

#include <ATen/ATen.h>

#include "kernels/attention/attention.h"
#include "kernels/kernels.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/lion/lion.h"
#include "kernels/muon/muon.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/transformer/build.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

struct Calls {
  int lion = 0, muon_momentum = 0, muon_move = 0;
  int rms_norm = 0, add_rms_norm = 0, gate = 0, rotation = 0, attention = 0, grouped_linear = 0, linear_loss = 0, adamw = 0,
      cross_entropy = 0;
  int gated_mlp = 0, self_attention = 0, gated_experts = 0;
  int layer_norm = 0, add_layer_norm = 0;
};
Calls calls;  // functions of a table hold nothing

at::Tensor counted_norm(const at::Tensor& x, const at::Tensor& factor, double eps) {
  ++calls.rms_norm;
  return fused_kernels().rms_norm(x, factor, eps);
}
SumAndNorm counted_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps) {
  ++calls.add_rms_norm;
  return fused_kernels().add_rms_norm(x, branch, factor, eps);
}
at::Tensor counted_layer_norm(const at::Tensor& x, const LayerNormWeights& weights, double eps) {
  ++calls.layer_norm;
  return fused_kernels().layer_norm(x, weights, eps);
}
SumAndNorm counted_layer_sum(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps) {
  ++calls.add_layer_norm;
  return fused_kernels().add_layer_norm(x, branch, weights, eps);
}
at::Tensor counted_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up) {
  ++calls.gate;
  return fused_kernels().gate(kind, gate, up);
}
at::Tensor counted_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
  ++calls.rotation;
  return fused_kernels().rotation(x, cos, sin, interleaved);
}
at::Tensor counted_attention(const AttentionInput& in, const AttentionRules& rules) {
  ++calls.attention;
  return fused_kernels().attention(in, rules);
}
at::Tensor counted_grouped(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows) {
  ++calls.grouped_linear;
  return fused_kernels().grouped_linear(x, weight, bias, rows);
}
LinearLoss counted_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options) {
  ++calls.linear_loss;
  return fused_kernels().linear_loss(hidden, head, labels, options);
}
void counted_adamw(const AdamWLists& lists, const AdamWNumbers& numbers) {
  ++calls.adamw;
  fused_kernels().adamw(lists, numbers);
}
void counted_lion(const LionLists& lists, const LionNumbers& numbers) {
  ++calls.lion;
  fused_kernels().lion(lists, numbers);
}
at::Tensor counted_momentum(const MuonMomentum& in) {
  ++calls.muon_momentum;
  return fused_kernels().muon_momentum(in);
}
void counted_move(const MuonMove& in) {
  ++calls.muon_move;
  fused_kernels().muon_move(in);
}
at::Tensor counted_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  ++calls.cross_entropy;
  return fused_kernels().cross_entropy(logits, labels);
}

/// These leave the work to the layer's formula.
at::Tensor counted_mlp(const GatedMlpInput& /*in*/) {
  ++calls.gated_mlp;
  return {};
}
at::Tensor counted_experts(const GatedExpertsInput& /*in*/, const ExpertRows& /*rows*/) {
  ++calls.gated_experts;
  return {};
}
at::Tensor counted_self_attention(const SelfAttentionInput& /*in*/) {
  ++calls.self_attention;
  return {};
}

const Kernels* counting(const config::Config&) {
  static constexpr Kernels all{.rms_norm = counted_norm,
                               .add_rms_norm = counted_sum,
                               .layer_norm = counted_layer_norm,
                               .add_layer_norm = counted_layer_sum,
                               .gate = counted_gate,
                               .gated_mlp = counted_mlp,
                               .rotation = counted_rotation,
                               .attention = counted_attention,
                               .self_attention = counted_self_attention,
                               .grouped_linear = counted_grouped,
                               .gated_experts = counted_experts,
                               .linear_loss = counted_loss,
                               .adamw = counted_adamw,
                               .lion = counted_lion,
                               .muon_momentum = counted_momentum,
                               .muon_move = counted_move,
                               .cross_entropy = counted_cross_entropy};
  return &all;
}

/// What an update of the job calls, layer by layer.
Calls calls_of(const config::Config& config) {
  Registries registries = native_registries();
  registries.kernels_of = counting;
  calls = {};
  const std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 1);
  ForwardContext context;
  const at::Tensor hidden = model->hidden(random_tokens(2, 8, 1), context).flatten(0, 1);
  const auto loss = make_part(registries.loss, "fused_linear_cross_entropy", config, registries);
  loss->from_hidden(hidden, *model->head(), random_tokens(2, 8, 2).flatten(), {}).total.backward();
  make_part(registries.loss, "cross_entropy", config, registries)->sum(at::zeros({16, kTinyVocab}), random_tokens(2, 8, 2).flatten());
  make_part(registries.optimizer, config.optimizer.name, config, registries, decay_groups(model->parameters(), 0.1))->step(1e-3);
  return calls;
}

}  // namespace

TEST_CASE("kernels: train.compile_model chooses the table that a part gets, and those that it is made of", "[kernels]") {
  const bool fused = GENERATE(true, false);
  config::Config config = tiny_config();
  config.train.compile_model = fused;
  config.model.norm_type = "seeing";
  Registries registries = native_registries();
  std::vector<const Kernels*> seen;
  registries.norm.add({"seeing", "", "native", {}}, [&](const PartArgs& args, const Place& place) {
    seen.push_back(args.kernels);
    return std::make_shared<RmsNorm>(place.dim, norm_options(args));
  });
  build_model(config, registries);
  CHECK(seen == std::vector<const Kernels*>(5, fused ? &fused_kernels() : &plain_kernels()));  // two a block, one behind them
}

TEST_CASE("kernels: a job computes with its table alone", "[kernels]") {
  config::Config config = tiny_config();
  const auto layers = static_cast<int>(config.model.n_layers);
  SECTION("dense") {
    config.model.qk_norm = true;
    const Calls dense = calls_of(config);
    CHECK(dense.rms_norm == 3 * layers + 1);
    CHECK(dense.add_rms_norm == layers);
    CHECK(dense.gate == layers);
    CHECK(dense.rotation == 2 * layers);
    CHECK(dense.attention == layers);
    CHECK(dense.grouped_linear == 0);
    CHECK(dense.linear_loss == 1);
    CHECK(dense.cross_entropy == 1);
    CHECK(dense.gated_mlp == layers);
    CHECK(dense.self_attention == layers);
    CHECK(dense.adamw == 2);  // weights that decay, and the others
  }
  SECTION("whole attentions, where there is nothing besides that they lack") {
    CHECK(calls_of(config).self_attention == layers);
    config.model.qk_norm = true;
    config.model.qk_norm_type = "layernorm";
    CHECK(calls_of(config).self_attention == 0);
  }
  SECTION("experts") {
    config.model.num_experts = 4;
    config.model.moe_top_k = 2;
    const Calls experts = calls_of(config);
    CHECK(experts.grouped_linear == 3 * layers);
    CHECK(experts.gated_experts == layers);
    config.model.moe_weight_on_input = true;  // more than the node has
    CHECK(calls_of(config).gated_experts == 0);
  }
  SECTION("layernorms") {
    config.model.norm_type = "layernorm";
    const Calls some = calls_of(config);
    CHECK(some.layer_norm == layers + 1);
    CHECK(some.add_layer_norm == layers);
    CHECK(some.rms_norm == 0);
  }
  SECTION("keys of single ops choose for these alone") {
    config.optimizer.fused = false;
    config.model.sdpa_backend = "math";
    const Calls some = calls_of(config);
    CHECK(some.adamw == 0);
    CHECK(some.attention == 0);
    CHECK(some.self_attention == 0);
    CHECK(some.gate == layers);
  }
  SECTION("updates of other optimizers") {
    config.optimizer.name = "lion";
    CHECK(calls_of(config).lion == 2);  // weights that decay, and the others
    config.optimizer.name = "muon";
    const Calls muon = calls_of(config);
    CHECK(muon.muon_momentum == 7 * layers);  // every hidden matrix
    CHECK(muon.muon_move == 7 * layers);
    CHECK(muon.adamw == 2);
    config.optimizer.fused = false;
    CHECK(calls_of(config).muon_move == 0);
  }
}

}  // namespace kf::test
