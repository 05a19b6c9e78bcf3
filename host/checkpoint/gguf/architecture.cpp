#include "checkpoint/gguf/architecture.h"

#include <cmath>
#include <numbers>
#include <set>
#include <string_view>

#include "checkpoint/foreign/gguf_names.h"
#include "checkpoint/gguf/file.h"
#include "config/plan/derived.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::gguf {
namespace {

using config::ModelConfig;

/// Keys of [model] that this file reads, and those that change no number of a trained model.
bool is_known(const std::string& key, const ModelConfig& model) {
  static const std::set<std::string_view> read{"dim",           "n_layers",           "n_heads",          "n_kv_heads",
                                               "vocab_size",    "ffn_dim_multiplier", "ffn_hidden_dim",   "norm_eps",
                                               "activation",    "max_seq_len",        "rope_theta",       "qk_norm",
                                               "head_dim",      "attn_bias",          "rope_factor",      "rope_scaling",
                                               "mlp_gated",     "tie_embeddings",     "norm_unit_offset", "embed_scale",
                                               "rope_low_freq", "rope_high_freq",     "rope_orig_len",    "rope_layout"};
  static const std::set<std::string_view> without_effect{
      "pad_id",   "init_std",       "init",           "init_scale",  "embed_init_std", "sdpa_backend", "preset",        "scale",
      "act_fp32", "attn_fp32",      "logits_dtype",   "norm_bias",   "dropout_embed",  "dropout_attn", "dropout_resid", "window",
      "chunk",    "rope_beta_fast", "rope_beta_slow", "rope_mscale", "rope_truncate",  "alibi_scale"};
  return read.contains(key) || without_effect.contains(key) || key.starts_with("mla_") ||
         (key.starts_with("moe_") && model.num_experts == 0);
}

class Faults {
 public:
  void add(const std::string& key, const std::string& value, const std::string& why = "") {
    lines_.push_back("\n  model." + key + " = " + value + (why.empty() ? "" : ": " + why));
  }
  void check() const {
    KF_CHECK(lines_.empty(), Code::config,
             "llama.cpp's models llama, qwen2, qwen3 and gemma have no place for these settings, so no GGUF file is written:{}",
             join(lines_, ""));
  }

 private:
  std::vector<std::string> lines_;
};

bool is_gemma(const ModelConfig& m) { return m.norm_unit_offset || m.embed_scale != 1.0; }

std::string name_of(const ModelConfig& m) {
  if (is_gemma(m)) {
    return "gemma";
  }
  return m.qk_norm ? "qwen3" : m.attn_bias == "qkv" ? "qwen2" : "llama";
}

void check_unknown(const config::Config& c, Faults& faults) {
  for (const config::Row& row : config::rows()) {
    if (row.section != "model" || row.get == nullptr || is_known(row.name, c.model)) {
      continue;
    }
    const auto text = [](const config::Node& node) { return config::to_json(node, config::JsonStyle::plain, 0); };
    if (const std::string value = text(row.get(c)); value != text(row.fallback)) {
      faults.add(row.name, value);
    }
  }
}

void check_known(const ModelConfig& m, const std::string& name, Faults& faults) {
  const std::string activation = name == "gemma" ? "gelu_tanh" : "silu";
  if (m.activation != activation) {
    faults.add("activation", kf::quoted(m.activation), name + " has " + kf::quoted(activation));
  }
  if (!config::mlp_gated(m)) {
    faults.add("mlp_gated", "false", "their feed-forward layers have a gate");
  }
  if (m.rope_scaling != "none" && m.rope_scaling != "linear" && (m.rope_scaling != "llama3" || name != "llama")) {
    faults.add("rope_scaling", kf::quoted(m.rope_scaling), "written are none, linear and, for llama, llama3");
  }
  if (m.rope_layout == "interleaved" && name != "llama") {
    faults.add("rope_layout", kf::quoted(m.rope_layout), name + " has \"half\"");
  }
  const bool biases_fit = name == "llama" || (name == "qwen2") == (m.attn_bias == "qkv");
  if (!biases_fit || (name != "llama" && m.attn_bias != "qkv" && m.attn_bias != "none")) {
    faults.add("attn_bias", kf::quoted(m.attn_bias), name + " has others");
  }
  if (name == "gemma" && (!m.norm_unit_offset || m.embed_scale != 0 || !m.tie_embeddings || m.qk_norm)) {
    faults.add("norm_unit_offset", m.norm_unit_offset ? "true" : "false",
               "gemma has it together with embed_scale = 0, tie_embeddings = true and no qk_norm");
  }
}

void add(const Name& name, const std::string& theirs, const std::string& ours, const ModelConfig& m, bool paired,
         std::vector<TensorRule>& out) {
  const std::int64_t heads = name.rows == Rows::queries ? m.n_heads : name.rows == Rows::keys ? config::kv_heads(m) : 0;
  out.push_back({theirs, ours, paired ? heads : 0, name.norm && m.norm_unit_offset});
}

void add_layer(const ModelConfig& m, std::int64_t layer, bool paired, std::vector<TensorRule>& out) {
  for (const Name& name : kOfBlock) {
    for (const char* kind : {".weight", ".bias"}) {
      if (!name.norm || kind == std::string_view(".weight")) {
        add(name, format("blk.{}.{}{}", layer, name.theirs, kind), format("layers.{}.{}{}", layer, name.ours, kind), m, paired, out);
      }
    }
  }
}

}  // namespace

Architecture architecture_of(const config::Config& c) {
  Faults faults;
  Architecture out{name_of(c.model), {}};
  check_unknown(c, faults);
  check_known(c.model, out.name, faults);
  faults.check();
  for (const Name& name : kOutside) {
    add(name, std::string(name.theirs), std::string(name.ours), c.model, false, out.tensors);
  }
  const bool paired =
      out.name == "llama" && c.model.rope_layout == "half";  // llama.cpp's llama rotates neighbours, its other models halves
  for (std::int64_t layer = 0; layer < c.model.n_layers; ++layer) {
    add_layer(c.model, layer, paired, out.tensors);
  }
  return out;
}

void write_settings(const Architecture& architecture, const ModelConfig& m, File& out) {
  const auto number = [&](const std::string& key, std::int64_t value) {
    out.add(architecture.name + "." + key, static_cast<std::uint32_t>(value));
  };
  const auto real = [&](const std::string& key, double value) { out.add(architecture.name + "." + key, static_cast<float>(value)); };
  number("vocab_size", m.vocab_size);
  number("context_length", m.max_seq_len);
  number("embedding_length", m.dim);
  number("block_count", m.n_layers);
  number("feed_forward_length", config::ffn_hidden_dim(m));
  number("attention.head_count", m.n_heads);
  number("attention.head_count_kv", config::kv_heads(m));
  number("attention.key_length", config::head_dim(m));
  number("attention.value_length", config::head_dim(m));
  number("rope.dimension_count", config::head_dim(m));
  real("attention.layer_norm_rms_epsilon", m.norm_eps);
  real("rope.freq_base", m.rope_theta);
  if (m.rope_scaling == "linear") {
    out.add(architecture.name + ".rope.scaling.type", "linear");
    real("rope.scaling.factor", m.rope_factor);
  }
}

std::vector<float> frequency_divisors(const ModelConfig& m) {
  std::vector<float> out;
  const std::int64_t width = config::head_dim(m);
  const auto length = static_cast<double>(m.rope_orig_len);
  for (std::int64_t i = 0; m.rope_scaling == "llama3" && i < width; i += 2) {
    const double turns = length * std::pow(m.rope_theta, -static_cast<double>(i) / static_cast<double>(width)) / (2 * std::numbers::pi);
    const double share = (turns - m.rope_low_freq) / std::max(m.rope_high_freq - m.rope_low_freq, 1e-9);
    const double kept = std::clamp(share, 0.0, 1.0);  // of the frequency; the rest is stretched
    out.push_back(static_cast<float>(1 / ((1 - kept) / m.rope_factor + kept)));
  }
  return out;
}

}  // namespace kf::gguf
