// Rotary settings, in the words of config.json.

#include <cmath>

#include "config/export/spellings.h"
#include "config/plan/derived.h"

namespace kf::config {
namespace {

void put_yarn(Table& out, const ModelConfig& m) {
  out["beta_fast"] = Node(m.rope_beta_fast);
  out["beta_slow"] = Node(m.rope_beta_slow);
  if (!m.rope_truncate) {
    out["truncate"] = Node(false);
  }
  if (m.rope_attn_factor == "softmax") {  // mscale / mscale_all_dim, 1, on queries and keys; mscale_all_dim squared on the scores
    out["mscale"] = Node(m.rope_mscale);
    out["mscale_all_dim"] = Node(m.rope_mscale);
    if (m.rope_gain && *m.rope_gain != 1) {
      out["attention_factor"] = Node(*m.rope_gain);
    }
    return;
  }
  const double usual = m.rope_factor <= 1 ? 1 : 0.1 * m.rope_mscale * std::log(m.rope_factor) + 1;
  const double gain = m.rope_gain.value_or(m.rope_attn_factor == "rotary" ? usual : 1.0);
  if (m.rope_gain || m.rope_attn_factor == "none" || m.rope_mscale != 1) {
    out["attention_factor"] = Node(gain);
  }
}

Array reals(const Reals& values) {
  Array out;
  for (const double value : values) {
    out.emplace_back(value);
  }
  return out;
}

/// The rotation of all layers, or of the global ones.
Table rotation(const ModelConfig& m) {
  const std::string& kind = m.rope_scaling;
  Table out;
  out["rope_type"] = Node(kind == "none" ? std::string("default") : kind);
  out["rope_theta"] = Node(m.rope_theta);
  if (kind == "none") {
    return out;
  }
  out["factor"] = Node(m.rope_factor);
  if (kind != "linear" && kind != "dynamic") {
    out["original_max_position_embeddings"] = Node(m.rope_orig_len);
  }
  if (kind == "llama3") {
    out["low_freq_factor"] = Node(m.rope_low_freq);
    out["high_freq_factor"] = Node(m.rope_high_freq);
  } else if (kind == "longrope") {
    out["short_factor"] = Node(reals(m.rope_short_factors));
    out["long_factor"] = Node(reals(m.rope_long_factors));
    if (m.rope_gain) {
      out["attention_factor"] = Node(*m.rope_gain);
    }
  } else if (kind == "yarn") {
    put_yarn(out, m);
  }
  return out;
}

/// The table alone: whatever else says something of the rotation goes.
Spelling alone(Table parameters) {
  return {{"rope_parameters", Node(std::move(parameters))},
          {"rope_scaling", std::nullopt},
          {"rope_theta", std::nullopt},
          {"partial_rotary_factor", std::nullopt}};
}

}  // namespace

std::vector<Spelling> rope_spellings(const ModelConfig& model) {
  std::vector<Spelling> out;
  const Table plain = rotation(model);
  const auto also = [&](Table table, const char* key, double value) {
    table[key] = Node(value);
    return table;
  };
  const Table part = also(plain, "partial_rotary_factor", model.rope_fraction);
  Table near;
  near["rope_type"] = Node(std::string("default"));
  near["rope_theta"] = Node(model.rope_theta_local.value_or(model.rope_theta));
  Table far = part;
  far["rope_type"] = Node(std::string("proportional"));
  for (const Table& global : {plain, far}) {
    Table both;
    both["full_attention"] = Node(global);
    both["sliding_attention"] = Node(near);
    Spelling spelling = alone(both);
    spelling.emplace_back("rope_local_base_freq", std::nullopt);
    out.push_back(spelling);
  }
  Spelling inner = alone(plain);
  inner.emplace_back("attn_config.rope_theta", Node(model.rope_theta));
  out.push_back(inner);
  out.push_back(alone(plain));
  out.push_back(alone(part));
  Spelling trained = alone(plain);
  trained.emplace_back("original_max_position_embeddings", Node(model.rope_orig_len));
  out.push_back(trained);
  if (model.attn_temp_tuning) {
    Table tuned = also(plain, "llama_4_scaling_beta", model.attn_temp_scale);
    tuned["original_max_position_embeddings"] = Node(model.attn_temp_floor);
    out.push_back(alone(tuned));
  }
  out.push_back({{"rope_theta", Node(model.rope_theta)}});
  out.push_back({{"rope_parameters.rope_theta", Node(model.rope_theta)}});
  const double rotated = model.rope_fraction * static_cast<double>(head_dim(model));
  out.push_back({{"rotary_dim", Node(static_cast<std::int64_t>(std::llround(rotated)))}});
  out.push_back({{"attn_config.rope_theta", Node(model.rope_theta)}});
  Array bases;
  for (std::int64_t i = 0; i < model.n_layers && i < 100'000; ++i) {
    const bool local = layer_kind(model, i) == "local";
    bases.emplace_back(!has_rope(model, i) ? 0.0 : local ? model.rope_theta_local.value_or(model.rope_theta) : model.rope_theta);
  }
  out.push_back({{"layer_rope_theta", Node(bases)}});
  return out;
}

}  // namespace kf::config
