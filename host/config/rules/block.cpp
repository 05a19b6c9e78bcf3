// Rules of the block: norms, feed-forward, positions, attention.

#include <algorithm>

#include "config/plan/derived.h"
#include "config/rules/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

bool has_layer(const ModelConfig& m, const std::string& kind) {
  for (std::int64_t layer = 0; layer < std::min(m.n_layers, kMostLayers); ++layer) {
    if (layer_kind(m, layer) == kind) {
      return true;
    }
  }
  return false;
}

/// Keys that do something only under another setting: said, because the user expects an effect.
void needs(Findings& findings, bool met, const std::vector<std::string>& keys, const std::string& what) {
  for (const std::string& key : keys) {
    if (!met && findings.given(key)) {
      findings.warn({key}, format("{} has no effect: it needs {}", key, what));
    }
  }
}

void norms_fit(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.norm_unit_offset && !m.norm_weight) {
    findings.problem({"model.norm_unit_offset", "model.norm_weight"},
                     "model.norm_unit_offset = true needs model.norm_weight = true: the offset is added to the weight");
  }
  needs(findings, m.qk_norm, {"model.qk_norm_kind", "model.qk_norm_type", "model.qk_norm_bias", "model.qk_norm_late"},
        "model.qk_norm = true");
  needs(findings, m.qk_norm_type == "layernorm", {"model.qk_norm_bias"}, "model.qk_norm_type = 'layernorm'");
  needs(findings, m.pos_embedding == "alibi", {"model.alibi_scale"}, "model.pos_embedding = 'alibi'");
  needs(findings, m.attention == "gqa",
        {"model.v_norm", "model.attn_gate", "model.global_head_dim", "model.global_kv_heads", "model.global_k_is_v"},
        "model.attention = 'gqa'");
  if (m.qk_norm && m.qk_norm_bias && (m.qk_norm_kind == "each" || m.qk_norm_kind == "l2")) {
    findings.problem({"model.qk_norm_bias", "model.qk_norm_kind"},
                     format("model.qk_norm_bias = true needs model.qk_norm_kind = 'head' or 'full', not '{}'", m.qk_norm_kind));
  }
  if (m.qk_norm && m.qk_norm_late && m.qk_norm_kind != "head" && m.qk_norm_kind != "l2") {
    findings.problem({"model.qk_norm_late", "model.qk_norm_kind"},
                     format("model.qk_norm_late = true needs model.qk_norm_kind = 'head', not '{}'", m.qk_norm_kind));
  }
  needs(findings, m.norm_type == "layernorm", {"model.norm_bias"}, "model.norm_type = 'layernorm'");
  if (m.qk_norm && m.attention == "mla") {
    findings.problem(
        {"model.qk_norm", "model.attention"},
        "model.qk_norm = true does not fit model.attention = 'mla', whose latents have norms of their own; set qk_norm = false");
  }
  if (m.qk_norm && m.qk_norm_kind == "l2" && m.pos_embedding != "rope") {
    findings.problem({"model.qk_norm_kind", "model.pos_embedding"},
                     format("model.qk_norm_kind = 'l2' normalises after the rotation: it needs model.pos_embedding = 'rope', not '{}'",
                            m.pos_embedding));
  }
}

void feed_forward_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.activation == "swiglu_oai" && m.mlp_gated.value_or(true) && m.mlp_act_limit == 0) {
    findings.problem({"model.activation", "model.mlp_act_limit"},
                     "model.activation = 'swiglu_oai' needs model.mlp_act_limit above 0 (gpt-oss has 7.0)");
  }
  if (m.activation == "swiglu_oai" && !m.mlp_gated.value_or(true)) {
    findings.problem({"model.activation", "model.mlp_gated"}, "model.activation = 'swiglu_oai' is gated; leave model.mlp_gated out");
  }
  if (m.activation == "xielu" && m.mlp_gated.value_or(false)) {
    findings.problem({"model.activation", "model.mlp_gated"}, "model.activation = 'xielu' has no gate; leave model.mlp_gated out");
  }
  if (m.activation == "xielu" && m.num_experts > 0) {
    findings.problem({"model.activation", "model.num_experts"},
                     "model.activation = 'xielu' has weights of its own, which experts do not: use another activation, or no experts");
  }
  needs(findings, m.activation != "xielu", {"model.act_fp32", "model.mlp_act_limit"}, "another model.activation than 'xielu'");
}

void vocabulary_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const CheckpointConfig& c = job.config.checkpoint;
  needs(findings, c.init_from.has_value(), {"checkpoint.init_head"}, "checkpoint.init_from");
  if (c.init_head == "fresh" && m.tie_embeddings) {
    findings.problem({"checkpoint.init_head", "model.tie_embeddings"},
                     "checkpoint.init_head = 'fresh' needs a head of its own: set model.tie_embeddings = false");
  }
  if (m.logits_dtype != "cast" && (job.config.train.mixed_precision == "fp32" || m.model_type != "transformer")) {
    needs(findings, false, {"model.logits_dtype"}, "train.mixed_precision = 'bf16' or 'fp16' and the model 'transformer'");
  }
  if (m.head_bias && m.tie_embeddings) {
    findings.problem({"model.head_bias", "model.tie_embeddings"},
                     "model.head_bias needs a head of its own: set model.tie_embeddings = false, or leave the bias out");
  }
  if (m.pad_id && *m.pad_id >= m.vocab_size) {
    findings.problem({"model.pad_id", "model.vocab_size"},
                     format("model.pad_id ({}) must be below model.vocab_size ({})", *m.pad_id, m.vocab_size));
  }
}

void positions_fit(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.pos_embedding == "sinusoidal" && m.dim % 2 != 0) {
    findings.problem({"model.dim", "model.pos_embedding"},
                     format("model.dim ({}) must be even for model.pos_embedding = 'sinusoidal'", m.dim));
  }
  const bool rope = m.pos_embedding == "rope";
  needs(
      findings, rope,
      {"model.rope_theta", "model.rope_theta_local", "model.rope_scaling", "model.rope_fraction", "model.rope_layout", "model.nope_every"},
      "model.pos_embedding = 'rope'");
  needs(findings, m.rope_pattern.empty(), {"model.nope_every"}, "no model.rope_pattern, which wins");
  if (rope && !m.rope_pattern.empty() && std::find(m.rope_pattern.begin(), m.rope_pattern.end(), "rope") == m.rope_pattern.end()) {
    findings.problem({"model.rope_pattern"}, "model.rope_pattern leaves no layer that rotates; use model.pos_embedding = 'none'");
  }
  if (static_cast<std::int64_t>(m.rope_pattern.size()) > m.n_layers) {
    findings.problem({"model.rope_pattern", "model.n_layers"},
                     format("model.rope_pattern names {} layers, model.n_layers is {}", m.rope_pattern.size(), m.n_layers));
  }
  if (rope && m.rope_pattern.empty() && m.nope_every == 1) {
    findings.problem({"model.nope_every"}, "model.nope_every = 1 leaves no layer that rotates; use model.pos_embedding = 'none'");
  }
  if (!rope) {
    return;
  }
  if (m.rope_fraction <= 0 || m.rope_fraction_local.value_or(1) <= 0) {
    const char* const key = m.rope_fraction <= 0 ? "model.rope_fraction" : "model.rope_fraction_local";
    findings.problem({key}, format("{} (0) must be above 0; use model.pos_embedding = 'none' or model.rope_pattern for no rotation", key));
    return;
  }
  for (std::int64_t layer = 0; m.attention != "mla" && layer < std::min(m.n_layers, kMostLayers); ++layer) {
    const double fraction = rope_fraction(m, layer);
    const double turning = static_cast<double>(head_dim(m, layer)) * fraction;
    const bool whole = m.rope_partial == "proportional" || static_cast<std::int64_t>(turning) % 2 == 0;
    if (fraction < 1 && (!whole || turning < 2)) {
      const bool local = m.rope_fraction_local && layer_kind(m, layer) == "local";
      findings.problem({local ? "model.rope_fraction_local" : "model.rope_fraction", "model.head_dim"},
                       format("model.rope_fraction{} ({}) of a head of {} makes {} rotated components; it must be an even number",
                              local ? "_local" : "", fraction, head_dim(m, layer), static_cast<std::int64_t>(turning)));
      break;
    }
  }
  needs(findings, m.rope_fraction < 1 || m.rope_fraction_local.value_or(1) < 1, {"model.rope_partial"}, "model.rope_fraction below 1");
}

/// Components that a layer stretches.
std::int64_t stretched_width(const ModelConfig& m, std::int64_t layer) {
  const auto share = static_cast<std::int64_t>(static_cast<double>(head_dim(m, layer)) * rope_fraction(m, layer));
  return m.attention == "mla" ? m.mla_rope_dim : share;
}

/// One factor a pair of rotated components, the same in every layer that is stretched.
void long_factors_fit(const ModelConfig& m, Findings& findings) {
  for (const auto& [key, factors] :
       {std::pair("model.rope_short_factors", &m.rope_short_factors), std::pair("model.rope_long_factors", &m.rope_long_factors)}) {
    for (std::int64_t layer = 0; layer < std::min(m.n_layers, kMostLayers); ++layer) {
      const bool plain = !has_rope(m, layer) || (m.rope_theta_local && layer_kind(m, layer) == "local");
      const std::int64_t width = stretched_width(m, layer);
      if (!plain && static_cast<std::int64_t>(factors->size()) != width / 2) {
        findings.problem({key}, format("{} has {} factors; {} rotated components need {}", key, factors->size(), width, width / 2));
        break;
      }
    }
  }
}

void stretch_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const std::string& kind = m.rope_scaling;
  if (kind == "none") {
    needs(findings, false,
          {"model.rope_factor", "model.rope_low_freq", "model.rope_high_freq", "model.rope_orig_len", "model.rope_beta_fast",
           "model.rope_beta_slow", "model.rope_truncate", "model.rope_attn_factor", "model.rope_mscale", "model.rope_short_factors",
           "model.rope_long_factors", "model.rope_gain"},
          "model.rope_scaling");
    return;
  }
  needs(findings, kind == "llama3", {"model.rope_low_freq", "model.rope_high_freq"}, "model.rope_scaling = 'llama3'");
  needs(findings, kind == "yarn",
        {"model.rope_beta_fast", "model.rope_beta_slow", "model.rope_truncate", "model.rope_attn_factor", "model.rope_mscale"},
        "model.rope_scaling = 'yarn'");
  needs(findings, kind == "yarn" || kind == "longrope", {"model.rope_gain"}, "model.rope_scaling = 'yarn' or 'longrope'");
  needs(findings, kind != "linear", {"model.rope_orig_len"}, "a model.rope_scaling other than 'linear'");
  needs(findings, kind == "longrope", {"model.rope_short_factors", "model.rope_long_factors"}, "model.rope_scaling = 'longrope'");
  if (kind == "longrope") {
    long_factors_fit(m, findings);
  }
  if (kind == "llama3" && m.rope_low_freq > m.rope_high_freq) {
    findings.problem({"model.rope_low_freq", "model.rope_high_freq"},
                     format("model.rope_low_freq ({}) must be at most model.rope_high_freq ({})", m.rope_low_freq, m.rope_high_freq));
  }
  if (kind == "yarn" && m.rope_beta_fast < m.rope_beta_slow) {
    findings.problem({"model.rope_beta_fast", "model.rope_beta_slow"},
                     format("model.rope_beta_fast ({}) must be at least model.rope_beta_slow ({})", m.rope_beta_fast, m.rope_beta_slow));
  }
}

/// What global layers have of their own.
void global_layers_fit(const ModelConfig& m, Findings& findings) {
  const bool mixed = has_layer(m, "global") && (has_layer(m, "local") || has_layer(m, "chunk"));
  needs(findings, mixed, {"model.global_head_dim", "model.global_kv_heads", "model.global_k_is_v"},
        "'global' beside 'local' in model.layer_pattern");
  if (m.global_kv_heads && m.n_heads % *m.global_kv_heads != 0) {
    findings.problem({"model.global_kv_heads", "model.n_heads"},
                     format("model.n_heads ({}) must be divisible by model.global_kv_heads ({})", m.n_heads, *m.global_kv_heads));
  }
  if (m.global_head_dim && *m.global_head_dim % 2 != 0 && m.pos_embedding == "rope") {
    findings.problem({"model.global_head_dim"},
                     format("model.global_head_dim ({}) must be even for rotary embeddings", *m.global_head_dim));
  }
}

void pattern_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.layer_pattern.empty()) {
    findings.problem({"model.layer_pattern"}, "model.layer_pattern must not be empty; [\"global\"] is the plain kind");
    return;
  }
  if (static_cast<std::int64_t>(m.layer_pattern.size()) > m.n_layers) {
    findings.problem({"model.layer_pattern", "model.n_layers"},
                     format("model.layer_pattern names {} layers, model.n_layers is {}", m.layer_pattern.size(), m.n_layers));
  }
  if (m.window_from_layer > m.n_layers) {
    findings.problem({"model.window_from_layer", "model.n_layers"},
                     format("model.window_from_layer ({}) must be at most model.n_layers ({})", m.window_from_layer, m.n_layers));
  }
  if (has_layer(m, "local") && m.window == 0) {
    findings.problem({"model.layer_pattern", "model.window"},
                     "model.layer_pattern has local layers: set model.window to the keys that they see");
  }
  if (has_layer(m, "chunk") && m.chunk == 0) {
    findings.problem({"model.layer_pattern", "model.chunk"},
                     "model.layer_pattern has chunk layers: set model.chunk to the positions of a chunk");
  }
  needs(findings, has_layer(m, "local"), {"model.window", "model.rope_theta_local", "model.rope_fraction_local"},
        "'local' in model.layer_pattern");
  global_layers_fit(m, findings);
  needs(findings, has_layer(m, "chunk"), {"model.chunk"}, "'chunk' in model.layer_pattern");
}

void latent_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.attention != "mla") {
    if (m.attention == "gqa") {
      needs(findings, false,
            {"model.mla_q_rank", "model.mla_kv_rank", "model.mla_nope_dim", "model.mla_rope_dim", "model.mla_v_dim", "model.mla_norm_eps"},
            "model.attention = 'mla'");
    }
    return;
  }
  if (m.mla_rope_dim % 2 != 0) {
    findings.problem({"model.mla_rope_dim"}, format("model.mla_rope_dim ({}) must be even", m.mla_rope_dim));
  }
  if (kv_heads(m) != m.n_heads) {
    findings.problem(
        {"model.n_kv_heads", "model.n_heads"},
        format("model.attention = 'mla' has one key and value a head: model.n_kv_heads ({}) must equal model.n_heads ({}); leave it out",
               kv_heads(m), m.n_heads));
  }
  if (m.head_dim) {
    findings.problem({"model.head_dim"}, "model.attention = 'mla' takes the widths of a head from the mla_ keys; leave model.head_dim out");
  }
  if (m.attn_temp_tuning) {
    findings.problem({"model.attn_temp_tuning", "model.attention"},
                     "model.attention = 'mla' does not scale its queries by their positions; leave model.attn_temp_tuning out");
  }
}

/// What the fused kernels cannot do.
void kernel_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const std::string& backend = m.sdpa_backend;
  if (backend != "auto" && backend != "math") {
    for (const auto& [key, on] : {std::pair("model.attn_softcap", m.attn_softcap > 0), std::pair("model.attn_sink", m.attn_sink),
                                  std::pair("model.dropout_attn", m.dropout_attn > 0)}) {
      if (on) {
        findings.problem({key, "model.sdpa_backend"},
                         format("{} has no {} kernel; use model.sdpa_backend = 'auto' or 'math'", key, backend));
      }
    }
  }
  if ((backend == "efficient" || backend == "cudnn") && job.config.run.device == "cpu") {
    findings.problem(
        {"model.sdpa_backend", "run.device"},
        format("model.sdpa_backend = '{}' is a GPU's kernel; on run.device = 'cpu' there are 'auto', 'flash' and 'math'", backend));
  }
  const bool formula = backend == "math" || m.attn_softcap > 0 || m.attn_sink || m.dropout_attn > 0;
  needs(findings, formula || m.attn_fp32 == "softmax", {"model.attn_fp32"},
        "model.sdpa_backend = 'math': fused kernels keep scores and softmax in fp32");
  needs(findings, m.attn_temp_tuning, {"model.attn_temp_scale", "model.attn_temp_floor", "model.attn_temp_layers"},
        "model.attn_temp_tuning = true");
  if (m.attn_temp_tuning && m.attention != "mla" && m.attn_temp_layers == "nope" && m.nope_every == 0 && m.rope_pattern.empty() &&
      m.pos_embedding == "rope") {
    findings.problem({"model.attn_temp_tuning", "model.nope_every"},
                     "model.attn_temp_tuning works in layers without rotation: set model.nope_every, model.pos_embedding = 'none', or "
                     "model.attn_temp_layers = 'all'");
  }
}

void init_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  needs(findings, m.init == "fan_in", {"model.init_scale"}, "model.init = 'fan_in'");
  needs(findings, m.init == "normal", {"model.init_std"}, "model.init = 'normal'");
}

}  // namespace

std::vector<Rule> block_rules() {
  return {norms_fit, feed_forward_fits, positions_fit, vocabulary_fits, stretch_fits, pattern_fits, latent_fits, kernel_fits, init_fits};
}

}  // namespace kf::config
