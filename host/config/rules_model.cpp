#include <algorithm>

#include "config/derived.h"
#include "config/rules.h"
#include "core/text.h"

namespace kf::config {
namespace {

bool mla(const ModelConfig& m) { return m.attention == "mla"; }

void heads_divide_dim(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!m.head_dim && !mla(m) && m.dim % m.n_heads != 0) {
    findings.problem({"model.dim", "model.n_heads"}, format("model.dim ({}) must be divisible by model.n_heads ({})", m.dim, m.n_heads));
  }
}

void head_width_is_even(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.pos_embedding != "rope" || mla(m)) {
    return;
  }
  if (m.head_dim && *m.head_dim % 2 != 0) {
    findings.problem({"model.head_dim"}, format("model.head_dim ({}) must be even for rotary embeddings", *m.head_dim));
  } else if (!m.head_dim && m.dim % m.n_heads == 0 && head_dim(m) % 2 != 0) {
    findings.problem(
        {"model.dim", "model.n_heads"},
        format("head_dim must be even for rotary embeddings: model.dim ({}) / model.n_heads ({}) = {}", m.dim, m.n_heads, head_dim(m)));
  }
}

void kv_heads_divide_heads(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.n_heads % kv_heads(m) != 0) {
    findings.problem({"model.n_heads", "model.n_kv_heads"},
                     format("model.n_heads ({}) must be divisible by model.n_kv_heads ({}); leave n_kv_heads out to take n_heads",
                            m.n_heads, kv_heads(m)));
  }
}

void sizes_fit_64_bits(const Job& job, Findings& findings) {
  // Products of these appear everywhere; far above any machine, far below overflow.
  const ModelConfig& m = job.config.model;
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  const std::vector<std::pair<std::string, std::int64_t>> sizes{{"model.dim", m.dim},
                                                                {"model.n_layers", m.n_layers},
                                                                {"model.vocab_size", m.vocab_size},
                                                                {"model.num_experts", m.num_experts},
                                                                {"model.max_seq_len", m.max_seq_len},
                                                                {"model.ffn_hidden_dim", m.ffn_hidden_dim.value_or(0)},
                                                                {"train.batch_size", job.config.train.batch_size},
                                                                {"train.seq_len", job.config.train.seq_len},
                                                                {"train.grad_accum_steps", job.config.train.grad_accum_steps}};
  for (const auto& [key, size] : sizes) {
    if (size >= limit) {
      findings.problem({key}, format("{} ({}) must be below 2^31", key, size));
    }
  }
}

void derived_widths_fit(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const std::int64_t widest = std::max(ffn_hidden_dim(m), is_moe(m) ? expert_ffn_hidden_dim(m) : 0);
  if (!m.ffn_hidden_dim && widest >= std::int64_t{1} << 31) {
    findings.problem({"model.ffn_dim_multiplier", "model.moe_expert_ffn_multiplier", "model.dim"},
                     format("model.ffn_dim_multiplier ({}) and model.moe_expert_ffn_multiplier ({}) make the feed-forward layer too wide: "
                            "{} is not below 2^31",
                            m.ffn_dim_multiplier, m.moe_expert_ffn_multiplier, widest));
  }
}

void top_k_fits_experts(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (is_moe(m) && m.moe_top_k > m.num_experts) {
    findings.problem({"model.moe_top_k", "model.num_experts"},
                     format("model.moe_top_k ({}) must be <= model.num_experts ({})", m.moe_top_k, m.num_experts));
  }
}

void experts_and_fused_kernels(const Job& job, Findings& findings) {
  if (is_moe(job.config.model) && job.config.train.compile_model) {
    findings.warn({"model.num_experts", "train.compile_model"},
                  "train.compile_model = true with experts (model.num_experts > 0): their shapes depend on the data, so they run unfused; "
                  "set train.compile_model = false to silence this");
  }
}

}  // namespace

std::vector<Rule> model_rules() {
  std::vector<Rule> rules{heads_divide_dim,   head_width_is_even, kv_heads_divide_heads,    sizes_fit_64_bits,
                          derived_widths_fit, top_k_fits_experts, experts_and_fused_kernels};
  for (const Rule rule : block_rules()) {
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace kf::config
