// Every option of the block: against formulas, with a cache, packed, counted.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <set>

#include "config/plan/derived.h"
#include "core/error.h"
#include "generate/generate.h"
#include "model/layer/dropout.h"
#include "support/tiny.h"
#include "unit/model/plain_model.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

using Change = std::function<void(config::ModelConfig&)>;
struct Variant {
  const char* name;
  Change change;
};

void make_latent(config::ModelConfig& m) {
  m.attention = "mla";
  m.n_kv_heads.reset();
  m.mla_kv_rank = 12;
  m.mla_nope_dim = 6;
  m.mla_rope_dim = 4;
  m.mla_v_dim = 10;
}

void stretch(config::ModelConfig& m, const char* kind) {
  m.rope_scaling = kind;
  m.rope_factor = 4;
  m.rope_orig_len = 16;
}

/// Settings that only few lines of the model read: one row each.
const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"plain", [](auto&) {}},
      {"head_dim", [](auto& m) { m.head_dim = 12; }},
      {"attn_bias qkv", [](auto& m) { m.attn_bias = "qkv"; }},
      {"attn_bias out", [](auto& m) { m.attn_bias = "out"; }},
      {"attn_bias all, mlp_bias", [](auto& m) { m.attn_bias = "all", m.mlp_bias = true; }},
      {"gelu, gated", [](auto& m) { m.activation = "gelu", m.mlp_gated = true; }},
      {"gelu_tanh", [](auto& m) { m.activation = "gelu_tanh"; }},
      {"relu2", [](auto& m) { m.activation = "relu2"; }},
      {"quick_gelu", [](auto& m) { m.activation = "quick_gelu"; }},
      {"tanh, biased", [](auto& m) { m.activation = "tanh", m.mlp_bias = true; }},
      {"silu, plain", [](auto& m) { m.mlp_gated = false; }},
      {"silu, clamped", [](auto& m) { m.mlp_act_limit = 0.05; }},
      {"swiglu_oai", [](auto& m) { m.activation = "swiglu_oai", m.mlp_act_limit = 0.05; }},
      {"xielu", [](auto& m) { m.activation = "xielu"; }},
      {"act_fp32", [](auto& m) { m.act_fp32 = true; }},
      {"sandwich", [](auto& m) { m.norm_placement = "sandwich"; }},
      {"post", [](auto& m) { m.norm_placement = "post"; }},
      {"parallel", [](auto& m) { m.norm_placement = "parallel"; }},
      {"norm without weight", [](auto& m) { m.norm_weight = false, m.qk_norm = true; }},
      {"norm_unit_offset", [](auto& m) { m.norm_unit_offset = true, m.qk_norm = true; }},
      {"layernorm without bias", [](auto& m) { m.norm_type = "layernorm", m.norm_bias = false; }},
      {"layernorm 1 + w", [](auto& m) { m.norm_type = "layernorm", m.norm_unit_offset = true; }},
      {"layernorm bare", [](auto& m) { m.norm_type = "layernorm", m.norm_bias = false, m.norm_weight = false; }},
      {"embed_norm", [](auto& m) { m.embed_norm = true; }},
      {"qk_norm head", [](auto& m) { m.qk_norm = true; }},
      {"qk_norm full", [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "full"; }},
      {"qk_norm each", [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "each"; }},
      {"qk_norm each as layernorm", [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "each", m.qk_norm_type = "layernorm"; }},
      {"qk_norm full as layernorm with a bias",
       [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "full", m.qk_norm_type = "layernorm", m.qk_norm_bias = true; }},
      {"qk_norm late, with an offset", [](auto& m) { m.qk_norm = true, m.qk_norm_late = true, m.norm_unit_offset = true; }},
      {"qk_norm l2 as layernorm", [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "l2", m.qk_norm_type = "layernorm"; }},
      {"qk_norm late, a bare layernorm",
       [](auto& m) { m.qk_norm = true, m.qk_norm_late = true, m.qk_norm_type = "layernorm", m.norm_weight = false, m.norm_bias = false; }},
      {"alibi, scaled", [](auto& m) { m.pos_embedding = "alibi", m.alibi_scale = 0.5; }},
      {"qk_norm l2, nope", [](auto& m) { m.qk_norm = true, m.qk_norm_kind = "l2", m.nope_every = 2; }},
      {"scales", [](auto& m) { m.embed_scale = 0, m.residual_scale = 0.3, m.logit_scale = 0.7, m.tie_embeddings = true; }},
      {"final_logit_softcap", [](auto& m) { m.final_logit_softcap = 0.5; }},
      {"learned", [](auto& m) { m.pos_embedding = "learned"; }},
      {"sinusoidal", [](auto& m) { m.pos_embedding = "sinusoidal"; }},
      {"no positions, tempered", [](auto& m) { m.pos_embedding = "none", m.attn_temp_tuning = true, m.attn_temp_floor = 3; }},
      {"nope, tempered", [](auto& m) { m.nope_every = 2, m.attn_temp_tuning = true, m.attn_temp_floor = 5, m.attn_temp_scale = 0.4; }},
      {"tempered everywhere", [](auto& m) { m.attn_temp_tuning = true, m.attn_temp_layers = "all", m.attn_temp_floor = 3; }},
      {"inverse layer scale", [](auto& m) { m.attn_inverse_layer_scale = true; }},
      {"local", [](auto& m) { m.layer_pattern = {"local"}, m.window = 3; }},
      {"local, global",
       [](auto& m) {
         m.layer_pattern = {"local", "global"}, m.window = 4;
       }},
      {"local from layer 1", [](auto& m) { m.layer_pattern = {"local"}, m.window = 4, m.window_from_layer = 1; }},
      {"local base",
       [](auto& m) {
         m.layer_pattern = {"global", "local"}, m.window = 5, m.rope_theta_local = 50, stretch(m, "linear");
       }},
      {"chunk, global",
       [](auto& m) {
         m.layer_pattern = {"chunk", "global"}, m.chunk = 4;
       }},
      {"attn_softcap", [](auto& m) { m.attn_softcap = 0.2; }},
      {"attn_sink", [](auto& m) { m.attn_sink = true; }},
      {"attn_sink, local", [](auto& m) { m.attn_sink = true, m.layer_pattern = {"local"}, m.window = 3; }},
      {"attn_scale", [](auto& m) { m.attn_scale = 0.9; }},
      {"math", [](auto& m) { m.sdpa_backend = "math", m.attn_fp32 = "scores"; }},
      {"math, no fp32", [](auto& m) { m.sdpa_backend = "math", m.attn_fp32 = "none"; }},
      {"flash", [](auto& m) { m.sdpa_backend = "flash"; }},
      {"linear", [](auto& m) { stretch(m, "linear"); }},
      {"llama3", [](auto& m) { stretch(m, "llama3"); }},
      {"yarn rotary", [](auto& m) { stretch(m, "yarn"); }},
      {"yarn on the scores", [](auto& m) { stretch(m, "yarn"), m.rope_attn_factor = "softmax", m.rope_mscale = 0.7; }},
      {"yarn without temperature", [](auto& m) { stretch(m, "yarn"), m.rope_attn_factor = "none", m.rope_truncate = false; }},
      {"yarn with a gain of its own", [](auto& m) { stretch(m, "yarn"), m.rope_attn_factor = "softmax", m.rope_gain = 0.7; }},
      {"half of a head", [](auto& m) { m.rope_fraction = 0.5; }},
      {"another share in local layers",
       [](auto& m) {
         m.layer_pattern = {"local", "global"}, m.window = 4, m.rope_fraction = 0.5, m.rope_partial = "proportional";
         m.rope_fraction_local = 1;
       }},
      {"rope_pattern",
       [](auto& m) {
         m.rope_pattern = {"nope", "rope"};
       }},
      {"v_norm plain", [](auto& m) { m.v_norm = "plain"; }},
      {"v_norm scaled", [](auto& m) { m.v_norm = "scaled"; }},
      {"gate of components", [](auto& m) { m.attn_gate = "element"; }},
      {"gate of heads", [](auto& m) { m.attn_gate = "head", m.n_kv_heads = 1; }},
      {"global heads",
       [](auto& m) {
         m.layer_pattern = {"local", "global"}, m.window = 4, m.global_head_dim = 6, m.global_kv_heads = 1, m.attn_gate = "element";
       }},
      {"keys are values",
       [](auto& m) {
         m.layer_pattern = {"global", "local"}, m.window = 4, m.global_k_is_v = true, m.qk_norm = true, m.v_norm = "plain";
       }},
      {"layer_scalar", [](auto& m) { m.layer_scalar = true, m.norm_placement = "sandwich"; }},
      {"attn_out_dim", [](auto& m) { m.attn_out_dim = 10, m.residual_scale = 0.7, m.attn_bias = "all", m.mlp_bias = true; }},
      {"proportional", [](auto& m) { m.rope_fraction = 0.5, m.rope_partial = "proportional"; }},
      {"interleaved", [](auto& m) { m.rope_layout = "interleaved"; }},
      {"interleaved half", [](auto& m) { m.rope_layout = "interleaved", m.rope_fraction = 0.5; }},
      {"mla", make_latent},
      {"mla with a query rank", [](auto& m) { make_latent(m), m.mla_q_rank = 14, m.attn_bias = "all", m.rope_layout = "interleaved"; }},
      {"mla, yarn, local",
       [](auto& m) { make_latent(m), stretch(m, "yarn"), m.rope_attn_factor = "softmax", m.layer_pattern = {"local"}, m.window = 5; }},
      {"mla, latent eps", [](auto& m) { make_latent(m), m.mla_q_rank = 14, m.mla_norm_eps = 0.5; }},
      {"mla, softcap, sink", [](auto& m) { make_latent(m), m.attn_softcap = 0.3, m.attn_sink = true; }},
  };
  return all;
}

config::Config with(const Variant& variant) {
  config::Config config = tiny_config();
  config.model.rope_theta = 100;
  variant.change(config.model);
  return config;
}

/// Every vector away from its start, so that biases, norms and sinks count.
std::shared_ptr<Model> stirred_model(const config::Config& config) {
  std::shared_ptr<Model> model = tiny_model(config);
  const at::NoGradGuard no_grad;
  std::int64_t index = 0;
  for (const ParameterPtr& parameter : model->parameters()) {
    if (parameter->role == Role::vector) {
      const at::Tensor wave =
          at::arange(parameter->numel(), at::kFloat).add(static_cast<double>(++index)).sin().view(parameter->shape) * 0.3;
      parameter->master.add_(wave);
      parameter->publish();
    }
  }
  return model;
}

}  // namespace

TEST_CASE("block: every option gives the numbers of its formula", "[block]") {
  const at::Tensor tokens = random_tokens(1, 11, 3);
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const config::Config config = with(variant);
    const auto model = stirred_model(config);
    const at::Tensor expected = plain_logits(config.model, *model, tokens[0]);
    const at::Tensor actual = logits_of(*model, tokens)[0].to(at::kDouble);
    CHECK((actual - expected).abs().max().item<double>() < 2e-5);
  }
}

TEST_CASE("block: options that are meant to change the numbers do", "[block]") {
  const at::Tensor tokens = random_tokens(1, 11, 3);
  const auto plain = logits_of(*tiny_model(with(variants().front())), tokens);
  // What starts at zero, or is only another way to the same numbers.
  const std::set<std::string> same{"plain",    "attn_bias qkv", "attn_bias out", "attn_bias all, mlp_bias",
                                   "act_fp32", "math",          "math, no fp32", "flash"};
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const at::Tensor logits = logits_of(*tiny_model(with(variant)), tokens);
    CHECK(at::allclose(logits, plain, 1e-5, 1e-6) == (same.count(variant.name) > 0));
  }
}

TEST_CASE("block: every option's cache gives the logits of the whole sequence", "[block][cache]") {
  const at::Tensor tokens = random_tokens(2, 12, 5);
  const at::NoGradGuard no_grad;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    if (std::string(variant.name) == "flash") {
      continue;  // the CPU's flash kernel takes no mask for several queries behind a cache
    }
    const auto model = stirred_model(with(variant));
    const at::Tensor whole = logits_of(*model, tokens);
    KvCache cache = model->make_cache(2, 12);
    std::int64_t first = 0;
    for (const std::int64_t length : {4, 1, 1, 3, 1, 1, 1}) {
      ForwardContext context;
      context.cache = &cache;
      const at::Tensor logits = model->forward(tokens.narrow(1, first, length), context);
      CHECK(at::allclose(logits, whole.narrow(1, first, length), 1e-4, 2e-5));
      first += length;
    }
  }
}

TEST_CASE("block: rows behind padding give the logits of each alone, for every option and with the cache", "[block][cache]") {
  const at::Tensor tokens = random_tokens(3, 12, 5);
  const std::vector<std::int64_t> starts{0, 3, 7};
  const at::NoGradGuard no_grad;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const auto model = stirred_model(with(variant));
    REQUIRE(model->has_cache());
    CHECK(model->takes_padding() == (std::string(variant.name) != "flash"));
    if (!model->takes_padding()) {
      continue;
    }
    KvCache cache = model->make_cache(3, 12);
    cache.starts = at::tensor(starts, at::kLong);
    std::int64_t first = 0;
    for (const std::int64_t length : {9, 1, 1, 1}) {
      ForwardContext context;
      context.cache = &cache;
      const at::Tensor logits = model->forward(tokens.narrow(1, first, length), context);
      CHECK(logits.isfinite().all().item<bool>());
      for (std::int64_t row = 0; row < 3; ++row) {
        const std::int64_t start = starts[static_cast<std::size_t>(row)];
        const at::Tensor alone = logits_of(*model, tokens.narrow(0, row, 1).narrow(1, start, 12 - start));
        const std::int64_t from = std::max(first, start);
        const at::Tensor here = logits.narrow(0, row, 1).narrow(1, from - first, first + length - from);
        CHECK(at::allclose(here, alone.narrow(1, from - start, first + length - from), 1e-4, 2e-5));
      }
      first += length;
    }
  }
}

TEST_CASE("packing: two documents in a row give the logits of each alone, whatever the positions", "[block][packing]") {
  const at::Tensor tokens = random_tokens(1, 13, 8);
  const at::Tensor docs = at::cat({at::zeros({1, 6}, at::kLong), at::ones({1, 7}, at::kLong)}, 1);
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    if (std::string(variant.name) == "flash") {
      continue;
    }
    const auto model = stirred_model(with(variant));
    const at::Tensor packed = logits_of(*model, tokens, docs);
    CHECK(at::allclose(packed.narrow(1, 0, 6), logits_of(*model, tokens.narrow(1, 0, 6)), 1e-4, 2e-5));
    CHECK(at::allclose(packed.narrow(1, 6, 7), logits_of(*model, tokens.narrow(1, 6, 7)), 1e-4, 2e-5));
  }
}

TEST_CASE("block: the settings count the parameters that the model has", "[block]") {
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const config::Config config = with(variant);
    CHECK(count_parameters(tiny_model(config)->parameters()) == config::parameter_count(config.model));
  }
}

TEST_CASE("block: bf16 follows fp32 under every option", "[block]") {
  const at::Tensor tokens = random_tokens(1, 11, 3);
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    const config::Config config = with(variant);
    const at::Tensor wide = logits_of(*tiny_model(config), tokens);
    const at::Tensor low = logits_of(*tiny_model(config, 1, at::kBFloat16), tokens);
    CHECK(low.scalar_type() == at::kBFloat16);
    CHECK(relative_difference(low.to(at::kFloat), wide) < 0.06);
  }
}

TEST_CASE("attention: a kernel that the machine lacks is an error that names the setting", "[attention]") {
  config::Config config = tiny_config();
  config.model.sdpa_backend = "cudnn";
  const auto model = tiny_model(config);
  CHECK_THROWS_WITH(logits_of(*model, random_tokens(1, 8, 3)), Catch::Matchers::Contains("model.sdpa_backend = \"cudnn\""));
}

TEST_CASE("dropout: draws depend on seed, step and micro-batch alone, and stop in evaluation", "[dropout]") {
  config::Config config = tiny_config();
  const std::string place = GENERATE(as<std::string>{}, "embed", "attn", "resid");
  CAPTURE(place);
  (place == "embed" ? config.model.dropout_embed : place == "attn" ? config.model.dropout_attn : config.model.dropout_resid) = 0.3;
  const auto model = tiny_model(config);
  const at::Tensor tokens = random_tokens(2, 16, 3);
  const auto logits = [&](std::int64_t step, std::int64_t micro) {
    const at::NoGradGuard no_grad;
    ForwardContext context;
    context.step = step;
    context.micro = micro;
    return model->forward(tokens, context);
  };
  CHECK(logits(3, 1).equal(logits(3, 1)));
  CHECK(!logits(3, 1).equal(logits(3, 2)));
  CHECK(!logits(3, 1).equal(logits(4, 1)));
  const auto same = tiny_model(config);
  const at::Tensor once = logits(3, 1);
  config.train.seed += 1;
  const auto other = tiny_model(config);
  const auto of = [&](Model& m) {
    const at::NoGradGuard no_grad;
    ForwardContext context;
    context.step = 3;
    context.micro = 1;
    return m.forward(tokens, context);
  };
  CHECK(of(*same).equal(once));
  CHECK(!of(*other).equal(once));
  model->train(false);
  CHECK(logits(3, 1).equal(logits_of(*tiny_model(tiny_config()), tokens)));
}

TEST_CASE("dropout: the share of dropped values is the rate, and the mean stays", "[dropout]") {
  const Dropout dropout(0.25, 1, 0, "test");
  const at::Tensor x = at::ones({200, 200});
  const at::Tensor y = dropout.apply(x, ForwardContext(), true);
  CHECK(y.eq(0).to(at::kFloat).mean().item<double>() == Approx(0.25).margin(0.01));
  CHECK(y.mean().item<double>() == Approx(1).margin(0.02));
  CHECK(dropout.apply(x, ForwardContext(), false).is_same(x));
  CHECK(Dropout(0, 1, 0, "test").apply(x, ForwardContext(), true).is_same(x));
}

TEST_CASE("init: fan_in is a normal cut at two deviations, by the inputs of a matrix", "[init]") {
  config::Config config = tiny_config();
  config.model.init = "fan_in";
  config.model.init_scale = 2;
  config.model.dim = 128;
  config.model.n_heads = 8;
  config.model.n_kv_heads = 8;
  config.model.ffn_hidden_dim = 512;
  const auto model = tiny_model(config);
  for (const ParameterPtr& p : model->parameters()) {
    CAPTURE(p->name);
    if (p->role == Role::embedding) {
      CHECK(p->master.std().item<double>() == Approx(1 / std::sqrt(128.0)).epsilon(0.05));
    } else if (p->role == Role::hidden) {
      const double std = std::sqrt(2.0 / static_cast<double>(p->shape[1]));
      CHECK(p->master.std().item<double>() == Approx(std).epsilon(0.05));
      CHECK(p->master.abs().max().item<double>() <= 2 * std / 0.8796 + 1e-6);
    }
  }
}

TEST_CASE("init: embed_init_std is the deviation of the embedding alone", "[init]") {
  config::Config config = tiny_config();
  config.model.embed_init_std = 0.5;
  const auto model = tiny_model(config);
  CHECK(model->parameters().front()->master.std().item<double>() == Approx(0.5).epsilon(0.1));
  CHECK(model->parameters().back()->master.std().item<double>() == Approx(0.1).epsilon(0.1));
}
