#include "config/export/comparable.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "config/plan/derived.h"
#include "config/schema/schema.h"

namespace kf::config {
namespace {

/// How a model is computed, where it comes from and how it is trained: no number of a trained model depends on these. (The layers of
/// multi-token prediction are no part of what predicts the next token.)
const std::set<std::string>& without_effect() {
  static const std::set<std::string> all{"preset",
                                         "scale",
                                         "sdpa_backend",
                                         "logits_dtype",
                                         "act_fp32",
                                         "attn_fp32",
                                         "init",
                                         "init_scale",
                                         "ffn_dim_multiplier",
                                         "mtp_layers",
                                         "moe_impl",
                                         "moe_packed_experts",
                                         "moe_gradient_scale",
                                         "moe_bias_schedule",
                                         "moe_bias_rate",
                                         "moe_router_fp32",
                                         "moe_sequence_aux_loss_weight",
                                         "moe_sequence_aux_scope",
                                         "moe_router_z_loss_weight",
                                         "moe_expert_ffn_multiplier"};
  return all;
}

const std::set<std::string>& training() {
  static const std::set<std::string> all{"init_std",      "embed_init_std", "dropout_embed",      "dropout_attn",
                                         "dropout_resid", "pad_id",         "moe_aux_loss_weight"};
  return all;
}

/// The canonical table under construction.
class Canonical {
 public:
  explicit Canonical(const ModelConfig& model) : m_(model) {
    Config config;
    config.model = model;
    for (const Row& row : rows()) {
      if (row.section == "model" && without_effect().count(row.name) == 0 && training().count(row.name) == 0) {
        out_[row.name] = row.get(config);
      }
    }
  }

  Settings take() {
    layers();
    heads();
    norms();
    positions();
    widths();
    experts();
    return std::move(out_);
  }

 private:
  void drop(std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      out_.erase(key);
    }
  }
  template <class T>
  void set(const char* key, T value) {
    out_[key] = Node(std::move(value));
  }
  bool any_layer(bool (*holds)(const ModelConfig&, std::int64_t)) const {
    for (std::int64_t i = 0; i < m_.n_layers; ++i) {
      if (holds(m_, i)) {
        return true;
      }
    }
    return false;
  }
  bool any_kind(const char* kind) const {
    for (std::int64_t i = 0; i < m_.n_layers; ++i) {
      if (layer_kind(m_, i) == kind) {
        return true;
      }
    }
    return false;
  }
  bool rotates() const { return any_layer(has_rope); }

  void layers() {
    Array kinds, ropes, experts;
    for (std::int64_t i = 0; i < m_.n_layers; ++i) {
      kinds.emplace_back(layer_kind(m_, i));
      ropes.emplace_back(std::string(has_rope(m_, i) ? "rope" : "nope"));
      experts.emplace_back(std::string(is_moe_layer(m_, i) ? "experts" : "dense"));
    }
    drop({"window_from_layer", "nope_every", "moe_frequency", "moe_first_dense"});
    set("layer_pattern", std::move(kinds));
    set("rope_pattern", std::move(ropes));
    set("moe_pattern", std::move(experts));
    if (!any_kind("local")) {
      drop({"window", "rope_theta_local", "rope_fraction_local"});
    }
    if (!any_kind("chunk")) {
      drop({"chunk"});
    }
  }

  void heads() {
    if (m_.attention == "mla") {
      set("mla_norm_eps", m_.mla_norm_eps.value_or(m_.norm_eps));
      drop({"head_dim", "n_kv_heads", "global_head_dim", "global_kv_heads", "global_k_is_v", "qk_norm", "v_norm"});
    } else {
      drop({"mla_q_rank", "mla_kv_rank", "mla_nope_dim", "mla_rope_dim", "mla_v_dim", "mla_norm_eps"});
      own_heads();
    }
    if (m_.attn_scale == 0) {
      const std::int64_t width = m_.attention == "mla" ? m_.mla_nope_dim + m_.mla_rope_dim : head_dim(m_);
      set("attn_scale", 1 / std::sqrt(static_cast<double>(width)));
    }
    if (!m_.attn_temp_tuning) {
      drop({"attn_temp_layers", "attn_temp_scale", "attn_temp_floor"});
    }
  }
  /// Of global layers beside others, and of the others.
  void own_heads() {
    const bool global = any_kind("global"), others = any_kind("local") || any_kind("chunk");
    const bool apart = global && others;
    const std::int64_t wide = m_.global_head_dim.value_or(head_dim(m_)), kv = m_.global_kv_heads.value_or(kv_heads(m_));
    set("head_dim", others ? head_dim(m_) : wide);
    set("n_kv_heads", others ? kv_heads(m_) : kv);
    drop({"global_head_dim", "global_kv_heads"});
    if (apart && wide != head_dim(m_)) {
      set("global_head_dim", wide);
      if (m_.attn_scale == 0) {
        set("attn_scale", 0.0);
      }
    }
    if (apart && kv != kv_heads(m_)) {
      set("global_kv_heads", kv);
    }
    if (!global) {
      drop({"global_k_is_v"});
    }
  }

  void norms() {
    if (m_.norm_type != "layernorm" || !m_.norm_weight) {
      set("norm_bias", m_.norm_type == "layernorm" && m_.norm_bias);
    }
    if (!m_.qk_norm) {
      drop({"qk_norm_kind", "qk_norm_type", "qk_norm_bias", "qk_norm_late"});
    } else if (m_.qk_norm_type != "layernorm") {
      drop({"qk_norm_bias"});
    }
    if (m_.qk_norm && m_.qk_norm_kind == "l2") {
      drop({"qk_norm_late"});
    }
  }

  void positions() {
    if (m_.pos_embedding != "alibi") {
      drop({"alibi_scale"});
    }
    if (m_.pos_embedding == "rope" && !rotates()) {
      set("pos_embedding", std::string("none"));
    }
    if (!rotates()) {
      std::erase_if(out_, [](const auto& setting) { return setting.first.starts_with("rope_") && setting.first != "rope_pattern"; });
      return;
    }
    rotation();
  }

  void rotation() {
    if (any_kind("local")) {
      const double share = m_.rope_fraction_local.value_or(m_.rope_fraction);
      drop({"rope_fraction_local"});
      if (share != m_.rope_fraction) {
        set("rope_fraction_local", share);
      }
      if (m_.rope_theta_local && *m_.rope_theta_local == m_.rope_theta && m_.rope_scaling == "none") {
        set("rope_theta_local", std::monostate());
      }
    }
    if (m_.rope_fraction == 1) {
      drop({"rope_partial"});
    }
    stretch();
  }

  void stretch() {
    const std::string& kind = m_.rope_scaling;
    const bool yarn = kind == "yarn", longrope = kind == "longrope";
    if (kind == "none") {
      drop({"rope_factor"});
    }
    if (kind == "none" || kind == "linear") {
      drop({"rope_orig_len"});
    }
    if (kind != "llama3") {
      drop({"rope_low_freq", "rope_high_freq"});
    }
    if (!yarn) {
      drop({"rope_beta_fast", "rope_beta_slow", "rope_truncate", "rope_attn_factor", "rope_mscale"});
    }
    if (!longrope) {
      drop({"rope_short_factors", "rope_long_factors"});
    }
    if (yarn) {
      temperature();
    } else if (longrope) {
      const double own =
          m_.rope_factor <= 1 ? 1 : std::sqrt(1 + std::log(m_.rope_factor) / std::log(static_cast<double>(m_.rope_orig_len)));
      set("rope_gain", m_.rope_gain.value_or(own));
    } else {
      drop({"rope_gain"});
    }
  }
  /// YaRN's, on queries and keys (rope_gain) and, squared, on the scores (rope_mscale).
  void temperature() {
    const double usual = m_.rope_factor <= 1 ? 1 : 0.1 * m_.rope_mscale * std::log(m_.rope_factor) + 1;
    set("rope_gain", m_.rope_gain.value_or(m_.rope_attn_factor == "rotary" ? usual : 1.0));
    drop({"rope_attn_factor"});
    if (m_.rope_attn_factor == "softmax") {
      set("rope_mscale", m_.rope_mscale);
    } else {
      drop({"rope_mscale"});
    }
  }

  void widths() {
    set("mlp_gated", mlp_gated(m_));
    set("ffn_hidden_dim", ffn_hidden_dim(m_));
    const bool dense = any_layer([](const ModelConfig& m, std::int64_t i) { return !is_moe_layer(m, i); });
    if (!dense && !m_.moe_beside_dense) {
      drop({"ffn_hidden_dim"});
    }
    if (m_.embed_scale == 0) {
      set("embed_scale", std::sqrt(static_cast<double>(m_.dim)));
    }
    if (m_.tie_embeddings && !m_.head_bias) {
      drop({"head_bias"});
    }
  }

  void experts() {
    if (!is_moe(m_)) {
      std::erase_if(out_, [](const auto& setting) { return setting.first.starts_with("moe_"); });
      return;
    }
    set("moe_ffn_dim", expert_ffn_hidden_dim(m_));
    const std::int64_t shared = m_.moe_shared_experts * shared_ffn_hidden_dim(m_);
    drop({"moe_shared_experts"});
    set("moe_shared_ffn_dim", shared);
    if (shared == 0) {
      drop({"moe_shared_gate"});
    }
    set("moe_input_dim", expert_dim(m_));
    const bool bias = moe_bias_rule(m_) != "none";
    set("moe_bias_rule", bias);  // whether there is a bias that chooses; its rule is training's
    if (m_.moe_router == "softmax" && m_.moe_norm_topk && !bias && m_.moe_groups <= 1) {
      set("moe_router", std::string("softmax_topk"));
    }
    if (m_.moe_router != "softmax" || out_["moe_router"] != Node(m_.moe_router)) {
      drop({"moe_norm_topk"});
    }
    if (m_.moe_groups <= 1) {
      drop({"moe_groups", "moe_topk_groups"});
    }
  }

  const ModelConfig& m_;
  Settings out_;
};

bool equal(const Node& a, const Node& b) {
  const auto* const x = std::get_if<double>(&a.value);
  const auto* const y = std::get_if<double>(&b.value);
  if (x != nullptr && y != nullptr) {
    return std::abs(*x - *y) <= 1e-12 * std::max(std::abs(*x), std::abs(*y));
  }
  return a == b;
}

}  // namespace

Settings comparable(const ModelConfig& model) { return Canonical(model).take(); }

Settings of_training(const ModelConfig& model) {
  Config config;
  config.model = model;
  Settings out;
  for (const Row& row : rows()) {
    if (row.section == "model" && training().count(row.name) > 0) {
      out[row.name] = row.get(config);
    }
  }
  out["embed_init_std"] = Node(model.embed_init_std.value_or(model.init_std));
  if (!is_moe(model)) {
    out.erase("moe_aux_loss_weight");
  }
  return out;
}

std::vector<Difference> differences(const Settings& ours, const Settings& theirs) {
  static const Node none;
  std::vector<Difference> out;
  for (const auto& [key, value] : ours) {
    const auto found = theirs.find(key);
    const Node& other = found != theirs.end() ? found->second : none;
    if (!equal(value, other)) {
      out.push_back({"model." + key, value, other});
    }
  }
  for (const auto& [key, value] : theirs) {
    if (!ours.contains(key) && !value.is_null()) {
      out.push_back({"model." + key, none, value});
    }
  }
  return out;
}

}  // namespace kf::config
