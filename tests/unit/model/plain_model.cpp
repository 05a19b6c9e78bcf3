#include "unit/model/plain_model.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>

namespace kf::test {
namespace {

using at::Tensor;
constexpr double kPi = 3.14159265358979323846;

/// One model's formulas. Rows are positions, columns components.
class Plain {
 public:
  Plain(const config::ModelConfig& config, Model& model) : m(config) {
    for (const ParameterPtr& parameter : model.parameters()) {
      weights_[parameter->name] = parameter->master.detach().to(at::kDouble);
    }
  }

  Tensor logits(const Tensor& tokens) {
    Tensor h = w("token_embedding.embedding.weight").index_select(0, tokens) * (m.embed_scale == 0 ? std::sqrt(m.dim) : m.embed_scale);
    if (m.embed_norm) {
      h = norm(h, "embed_norm");
    }
    if (m.pos_embedding == "learned") {
      h = h + w("position_embedding.embedding.weight").narrow(0, 0, h.size(0));
    } else if (m.pos_embedding == "sinusoidal") {
      h = h + sinusoids(h.size(0));
    }
    for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
      h = block(h, layer);
    }
    h = norm(h, "norm");
    const Tensor& head = m.tie_embeddings ? w("token_embedding.embedding.weight") : w("output_head.proj.weight");
    Tensor z = at::matmul(h, head.t()) * m.logit_scale;
    return m.final_logit_softcap > 0 ? at::tanh(z / m.final_logit_softcap) * m.final_logit_softcap : z;
  }

 private:
  bool has(const std::string& name) const { return weights_.count(name) > 0; }
  const Tensor& w(const std::string& name) const { return weights_.at(name); }

  Tensor linear(const Tensor& x, const std::string& name) const {
    const Tensor y = at::matmul(x, w(name + ".weight").t());
    return has(name + ".bias") ? y + w(name + ".bias") : y;
  }

  /// Over the last dim; a norm without parameters has no entry. Of a table of weights `row` is the norm's own.
  Tensor normal(const Tensor& x, const std::string& name, bool layernorm, std::int64_t row = 0) const {
    const Tensor centred = layernorm ? x - x.mean(-1, true) : x;
    const double eps = name.ends_with("_a_norm") ? m.mla_norm_eps.value_or(m.norm_eps) : m.norm_eps;  // of a latent
    Tensor y = centred / (centred.square().mean(-1, true) + eps).sqrt();
    if (has(name + ".weight")) {
      const Tensor& weight = w(name + ".weight");
      y = y * ((weight.dim() == 2 ? weight[row] : weight) + (m.norm_unit_offset ? 1 : 0));
    }
    return has(name + ".bias") ? y + w(name + ".bias") : y;
  }
  Tensor norm(const Tensor& x, const std::string& name) const { return normal(x, name, m.norm_type == "layernorm"); }

  Tensor block(const Tensor& x, std::int64_t layer) {
    const std::string at = "layers." + std::to_string(layer) + ".";
    const std::string& place = m.norm_placement;
    const bool before = place != "post";
    const bool after = place == "post" || place == "sandwich";
    const auto branch = [&](const Tensor& in, const std::string& name, const std::string& norm_name, const auto& f) {
      Tensor y = f(before ? norm(in, at + norm_name) : in);
      y = after ? norm(y, at + name + "_post_norm") : y;
      return y * m.residual_scale;
    };
    const auto mix = [&](const Tensor& n) { return attention(n, at + "attention.", layer); };
    const auto transform = [&](const Tensor& n) { return mlp(n, at + "mlp."); };
    if (place == "parallel") {
      return x + branch(x, "attention", "attention_norm", mix) + branch(x, "mlp", "attention_norm", transform);
    }
    const Tensor scalar = m.layer_scalar ? w(at + "layer_scalar") : at::ones({1}, at::kDouble);
    if (m.attn_out_dim > 0) {
      const Tensor narrow = mlp(norm(mix(norm(x, at + "attention_norm")), at + "mlp_norm"), at + "mlp.");
      return (x + linear(narrow, at + "up") * m.residual_scale) * scalar;
    }
    const Tensor h = x + branch(x, "attention", "attention_norm", mix);
    return (h + branch(h, "mlp", "mlp_norm", transform)) * scalar;
  }

  Tensor act(const Tensor& x) const {
    const std::string& name = m.activation;
    if (name == "silu") {
      return x * at::sigmoid(x);
    }
    if (name == "gelu") {
      return x * 0.5 * (1 + at::erf(x / std::sqrt(2.0)));
    }
    if (name == "gelu_tanh") {
      return 0.5 * x * (1 + at::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x.pow(3))));
    }
    if (name == "relu") {
      return x.clamp_min(0);
    }
    if (name == "relu2") {
      return x.clamp_min(0).square();
    }
    if (name == "tanh") {
      return at::tanh(x);
    }
    return x * at::sigmoid(1.702 * x);  // quick_gelu, and the gate of swiglu_oai
  }

  Tensor mlp(const Tensor& x, const std::string& at) const {
    const double limit = m.mlp_act_limit;
    Tensor up = linear(x, at + "up_proj");
    if (has(at + "gate_proj.weight")) {
      Tensor gate = linear(x, at + "gate_proj");
      if (limit > 0) {
        gate = gate.clamp_max(limit);
        up = up.clamp(-limit, limit);
      }
      return linear(act(gate) * (m.activation == "swiglu_oai" ? up + 1 : up), at + "down_proj");
    }
    if (has(at + "alpha_p")) {
      const Tensor above = (1 + w(at + "alpha_p").exp()).log(), below = 0.5 + (1 + w(at + "alpha_n").exp()).log();
      return linear(at::where(up > 0, above * up.square(), below * (up.exp() - 1 - up)) + 0.5 * up, at + "down_proj");
    }
    return linear(act(limit > 0 ? up.clamp_max(limit) : up), at + "down_proj");
  }

  /// Angle of every pair at every position, (T, width / 2), by the formulas of the papers.
  std::vector<double> frequencies(std::int64_t width, bool local) const {
    const double theta = local && m.rope_theta_local ? *m.rope_theta_local : m.rope_theta;
    const bool stretched = m.rope_scaling != "none" && !(local && m.rope_theta_local);
    std::vector<double> out;
    for (std::int64_t i = 0; i < width / 2; ++i) {
      double f = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      if (stretched && m.rope_scaling == "linear") {
        f /= m.rope_factor;
      } else if (stretched && m.rope_scaling == "llama3") {
        const double turns = static_cast<double>(m.rope_orig_len) * f / (2 * kPi);  // over the original length
        const double keep = std::min(1.0, std::max(0.0, (turns - m.rope_low_freq) / (m.rope_high_freq - m.rope_low_freq)));
        f = keep * f + (1 - keep) * f / m.rope_factor;
      } else if (stretched) {
        const auto border = [&](double turns) {
          return static_cast<double>(width) * std::log(static_cast<double>(m.rope_orig_len) / (turns * 2 * kPi)) / (2 * std::log(theta));
        };
        double low = border(m.rope_beta_fast);
        double high = border(m.rope_beta_slow);
        if (m.rope_truncate) {
          low = std::floor(low);
          high = std::ceil(high);
        }
        low = std::max(low, 0.0);
        high = std::min(high, static_cast<double>(width - 1));
        const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / std::max(high - low, 1e-3)));
        f = ramp * f / m.rope_factor + (1 - ramp) * f;
      }
      out.push_back(f);
    }
    return out;
  }

  /// x (T, D) with its rotated components first.
  Tensor rotate(const Tensor& x, bool local) const {
    const std::int64_t whole = x.size(1);
    const double fraction = local && m.rope_fraction_local ? *m.rope_fraction_local : m.rope_fraction;
    const bool proportional = fraction < 1 && m.rope_partial == "proportional";
    const std::int64_t width = proportional ? whole : static_cast<std::int64_t>(static_cast<double>(whole) * fraction);
    std::vector<double> f = frequencies(width, local);
    if (proportional) {
      for (std::size_t i = static_cast<std::size_t>(fraction * static_cast<double>(whole) / 2); i < f.size(); ++i) {
        f[i] = 0;
      }
    }
    const bool warm = m.rope_scaling == "yarn" && m.rope_attn_factor == "rotary" && !(local && m.rope_theta_local);
    const double usual = warm ? 0.1 * m.rope_mscale * std::log(m.rope_factor) + 1 : 1;
    const double gain = m.rope_scaling == "yarn" && !(local && m.rope_theta_local) ? m.rope_gain.value_or(usual) : usual;
    Tensor y = x.clone();
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      for (std::int64_t i = 0; i < width / 2; ++i) {
        const std::int64_t a = m.rope_layout == "half" ? i : 2 * i;
        const std::int64_t b = m.rope_layout == "half" ? i + width / 2 : 2 * i + 1;
        const double angle = static_cast<double>(t) * f[static_cast<std::size_t>(i)];
        const Tensor xa = x[t][a].clone();
        const Tensor xb = x[t][b].clone();
        y[t][a].copy_(gain * (xa * std::cos(angle) - xb * std::sin(angle)));
        y[t][b].copy_(gain * (xb * std::cos(angle) + xa * std::sin(angle)));
      }
    }
    return y;
  }

  std::string kind(std::int64_t layer) const {
    return layer < m.window_from_layer ? "global" : m.layer_pattern[static_cast<std::size_t>(layer) % m.layer_pattern.size()];
  }
  bool rotates(std::int64_t layer) const {
    if (m.pos_embedding != "rope" || m.rope_pattern.empty()) {
      return m.pos_embedding == "rope" && (m.nope_every == 0 || (layer + 1) % m.nope_every != 0);
    }
    return m.rope_pattern[static_cast<std::size_t>(layer) % m.rope_pattern.size()] == "rope";
  }

  /// softmax(scores) v of one head, position by position.
  Tensor mix(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t layer, const std::string& at, std::int64_t head) const {
    double scale = m.attn_scale > 0 ? m.attn_scale : 1 / std::sqrt(static_cast<double>(q.size(1)));
    if (m.attn_inverse_layer_scale) {
      scale /= static_cast<double>(layer + 1);
    }
    if (m.rope_scaling == "yarn" && m.rope_attn_factor == "softmax") {
      scale *= std::pow(0.1 * m.rope_mscale * std::log(m.rope_factor) + 1, 2);
    }
    std::vector<Tensor> rows;
    for (std::int64_t t = 0; t < q.size(0); ++t) {
      double warmth = 1;
      const bool everywhere = m.attn_temp_layers == "all";
      if (m.attn_temp_tuning && (everywhere || !rotates(layer))) {
        warmth = 1 + m.attn_temp_scale *
                         std::log1p(std::floor(static_cast<double>(everywhere ? t : t + 1) / static_cast<double>(m.attn_temp_floor)));
      }
      std::int64_t first = 0;
      if (kind(layer) == "local") {
        first = std::max<std::int64_t>(0, t - m.window + 1);
      } else if (kind(layer) == "chunk") {
        first = t / m.chunk * m.chunk;
      }
      Tensor scores = at::matmul(k.narrow(0, first, t - first + 1), q[t]) * (scale * warmth);
      if (m.attn_softcap > 0) {
        scores = at::tanh(scores / m.attn_softcap) * m.attn_softcap;
      }
      if (m.pos_embedding == "alibi") {  // heads are a power of two here
        const double slope = std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(m.n_heads)) * m.alibi_scale;
        scores = scores + (at::arange(first, t + 1, at::kDouble) - static_cast<double>(t)) * slope;
      }
      Tensor powers = scores.exp();
      Tensor sum = powers.sum();
      if (m.attn_sink) {
        sum = sum + w(at + "sinks")[head].exp();
      }
      rows.push_back(at::matmul(powers / sum, v.narrow(0, first, t - first + 1)));
    }
    return at::stack(rows);
  }

  Tensor attention(const Tensor& x, const std::string& at, std::int64_t layer) const {
    return m.attention == "mla" ? latent(x, at, layer) : grouped(x, at, layer);
  }

  Tensor grouped(const Tensor& x, const std::string& at, std::int64_t layer) const {
    const bool global = kind(layer) == "global";
    const std::int64_t usual = m.head_dim.value_or(m.dim / m.n_heads);
    const std::int64_t width = global ? m.global_head_dim.value_or(usual) : usual;
    const std::int64_t kv_heads = global && m.global_kv_heads ? *m.global_kv_heads : m.n_kv_heads.value_or(m.n_heads);
    const bool full = m.qk_norm && m.qk_norm_kind == "full";
    const bool each = m.qk_norm && (m.qk_norm_kind == "head" || m.qk_norm_kind == "each");
    const bool layernorm = m.qk_norm_type == "layernorm";
    const Tensor q = full ? normal(linear(x, at + "q_proj"), at + "q_norm", layernorm) : linear(x, at + "q_proj");
    const Tensor k = full ? normal(linear(x, at + "k_proj"), at + "k_norm", layernorm) : linear(x, at + "k_proj");
    const Tensor v = linear(x, at + (global && m.global_k_is_v ? "k_proj" : "v_proj"));
    const auto values = [&](std::int64_t kv) {
      Tensor own = v.narrow(1, kv * width, width);
      if (m.v_norm == "none") {
        return own;
      }
      const Tensor y = own / (own.square().mean(-1, true) + m.norm_eps).sqrt();
      return has(at + "v_norm.weight") ? y * w(at + "v_norm.weight") : y;
    };
    const Tensor gate = m.attn_gate == "none" ? Tensor() : at::sigmoid(linear(x, at + "gate_proj"));
    const auto gated = [&](const Tensor& mixed, std::int64_t h) {
      const std::int64_t each_wide = m.attn_gate == "head" ? 1 : width;
      return gate.defined() ? mixed * gate.narrow(1, h * each_wide, each_wide) : mixed;
    };
    const auto prepared = [&](Tensor part, const std::string& name, std::int64_t h) {
      part = each && !m.qk_norm_late ? normal(part, at + name, layernorm, h) : part;
      if (!rotates(layer)) {
        return part;
      }
      part = rotate(part, kind(layer) == "local");
      part = each && m.qk_norm_late ? normal(part, at + name, layernorm) : part;
      if (!m.qk_norm || m.qk_norm_kind != "l2") {
        return part;
      }
      part = layernorm ? part - part.mean(-1, true) : part;
      return part / (part.square().mean(-1, true) + m.norm_eps).sqrt();
    };
    const std::int64_t group = m.n_heads / kv_heads;
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < m.n_heads; ++h) {
      const std::int64_t kv = h / group;
      const Tensor own = prepared(q.narrow(1, h * width, width), "q_norm", h), key = prepared(k.narrow(1, kv * width, width), "k_norm", kv);
      heads.push_back(gated(mix(own, key, values(kv), layer, at, h), h));
    }
    return linear(at::cat(heads, 1), at + "o_proj");
  }

  Tensor latent(const Tensor& x, const std::string& at, std::int64_t layer) const {
    const std::int64_t nope = m.mla_nope_dim;
    const std::int64_t rope = m.mla_rope_dim;
    const auto turned = [&](const Tensor& part) { return rotates(layer) ? rotate(part, kind(layer) == "local") : part; };
    const Tensor q =
        m.mla_q_rank == 0 ? linear(x, at + "q_proj") : linear(normal(linear(x, at + "q_a_proj"), at + "q_a_norm", false), at + "q_b_proj");
    const Tensor down = linear(x, at + "kv_a_proj");
    const Tensor up = linear(normal(down.narrow(1, 0, m.mla_kv_rank), at + "kv_a_norm", false), at + "kv_b_proj");
    const Tensor shared = turned(down.narrow(1, m.mla_kv_rank, rope));
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < m.n_heads; ++h) {
      const Tensor own = q.narrow(1, h * (nope + rope), nope + rope);
      const Tensor kv = up.narrow(1, h * (nope + m.mla_v_dim), nope + m.mla_v_dim);
      heads.push_back(mix(at::cat({own.narrow(1, 0, nope), turned(own.narrow(1, nope, rope))}, 1),
                          at::cat({kv.narrow(1, 0, nope), shared}, 1), kv.narrow(1, nope, m.mla_v_dim), layer, at, h));
    }
    return linear(at::cat(heads, 1), at + "o_proj");
  }

  Tensor sinusoids(std::int64_t length) const {
    const std::int64_t half = m.dim / 2;
    Tensor out = at::zeros({length, m.dim}, at::kDouble);
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double rate = std::exp(-static_cast<double>(i) * std::log(1e4) / std::max(1.0, static_cast<double>(half - 1)));
        out[t][i] = std::sin(static_cast<double>(t) * rate);
        out[t][half + i] = std::cos(static_cast<double>(t) * rate);
      }
    }
    return out;
  }

  const config::ModelConfig& m;
  std::map<std::string, Tensor> weights_;
};

}  // namespace

at::Tensor plain_logits(const config::ModelConfig& config, Model& model, const at::Tensor& tokens) {
  return Plain(config, model).logits(tokens);
}

}  // namespace kf::test
