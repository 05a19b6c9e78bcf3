#include <algorithm>

#include "config/plan/derived.h"
#include "config/plan/kernel_set.h"
#include "config/rules/rules.h"
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
                                                                {"model.n_heads", m.n_heads},
                                                                {"model.n_kv_heads", m.n_kv_heads.value_or(0)},
                                                                {"model.head_dim", m.head_dim.value_or(0)},
                                                                {"model.global_head_dim", m.global_head_dim.value_or(0)},
                                                                {"model.attn_out_dim", m.attn_out_dim},
                                                                {"model.moe_input_dim", m.moe_input_dim},
                                                                {"model.vocab_size", m.vocab_size},
                                                                {"model.num_experts", m.num_experts},
                                                                {"model.moe_ffn_dim", m.moe_ffn_dim.value_or(0)},
                                                                {"model.moe_shared_ffn_dim", m.moe_shared_ffn_dim.value_or(0)},
                                                                {"model.moe_shared_experts", m.moe_shared_experts},
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
  if (m.n_layers > kMostLayers) {
    findings.problem({"model.n_layers"}, format("model.n_layers ({}) must be at most {}", m.n_layers, kMostLayers));
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

/// Whether the router scores by sigmoid or sqrtsoftplus; a script's own router may do anything.
bool scores_by_softmax(const ModelConfig& m) { return m.moe_router.starts_with("softmax"); }

bool chooses_in_groups(const ModelConfig& m) {
  return m.moe_router == "softmax" || m.moe_router == "sigmoid" || m.moe_router == "sqrtsoftplus";
}

void groups_divide_experts(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!is_moe(m) || m.moe_groups < 0 || m.moe_topk_groups < 0 || (m.moe_groups == 0 && m.moe_topk_groups == 0)) {
    return;
  }
  const auto wrong = [&](const std::vector<std::string>& keys, const std::string& message) { findings.problem(keys, message); };
  if (!chooses_in_groups(m)) {
    wrong({"model.moe_groups", "model.moe_router"},
          format("model.moe_groups ({}) needs model.moe_router = softmax, sigmoid or sqrtsoftplus, not {}", m.moe_groups, m.moe_router));
  } else if (m.moe_groups == 0 || m.moe_topk_groups == 0) {
    wrong(
        {"model.moe_groups", "model.moe_topk_groups"},
        format("model.moe_groups ({}) and model.moe_topk_groups ({}) go together: give both, or neither", m.moe_groups, m.moe_topk_groups));
  } else if (m.num_experts % m.moe_groups != 0 || m.num_experts / m.moe_groups < 2) {
    wrong({"model.num_experts", "model.moe_groups"},
          format("model.num_experts ({}) must be divisible by model.moe_groups ({}), with at least 2 experts in each", m.num_experts,
                 m.moe_groups));
  } else if (m.moe_topk_groups > m.moe_groups) {
    wrong({"model.moe_topk_groups", "model.moe_groups"},
          format("model.moe_topk_groups ({}) must be <= model.moe_groups ({})", m.moe_topk_groups, m.moe_groups));
  } else if (m.moe_top_k > m.moe_topk_groups * (m.num_experts / m.moe_groups)) {
    wrong({"model.moe_top_k", "model.moe_topk_groups"},
          format("model.moe_top_k ({}) must be <= the {} experts of model.moe_topk_groups ({}) groups", m.moe_top_k,
                 m.moe_topk_groups * (m.num_experts / m.moe_groups), m.moe_topk_groups));
  }
}

void dense_layers_come_first(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!is_moe(m) || m.moe_frequency <= 0) {
    return;
  }
  if (static_cast<std::int64_t>(m.moe_pattern.size()) > m.n_layers) {
    findings.problem({"model.moe_pattern", "model.n_layers"},
                     format("model.moe_pattern names {} layers, model.n_layers is {}", m.moe_pattern.size(), m.n_layers));
    return;
  }
  if (!m.moe_pattern.empty()) {
    for (const auto& [key, given] :
         {std::pair("model.moe_first_dense", m.moe_first_dense != 0), std::pair("model.moe_frequency", m.moe_frequency != 1)}) {
      if (given && findings.given(key)) {
        findings.warn({key}, format("{} has no effect: model.moe_pattern says which layers have experts", key));
      }
    }
  }
  if (m.moe_first_dense > m.n_layers) {
    findings.problem({"model.moe_first_dense", "model.n_layers"},
                     format("model.moe_first_dense ({}) must be <= model.n_layers ({})", m.moe_first_dense, m.n_layers));
    return;
  }
  for (std::int64_t layer = 0; layer < std::min(m.n_layers, kMostLayers); ++layer) {
    if (is_moe_layer(m, layer)) {
      return;
    }
  }
  findings.warn(
      {"model.num_experts", "model.moe_frequency", "model.moe_first_dense", "model.n_layers"},
      m.moe_pattern.empty()
          ? format("model.num_experts = {}, but none of the {} layers has experts: model.moe_frequency = {}, model.moe_first_dense = {}",
                   m.num_experts, m.n_layers, m.moe_frequency, m.moe_first_dense)
          : format("model.num_experts = {}, but none of the {} layers has experts: model.moe_pattern", m.num_experts, m.n_layers));
}

void bias_rule_fits_router(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  const bool fits = m.moe_bias_rule == "ema"    ? !m.moe_router.starts_with("softmax_")
                    : m.moe_bias_rule == "sign" ? chooses_in_groups(m)
                                                : true;
  if (is_moe(m) && !fits) {
    findings.problem({"model.moe_bias_rule", "model.moe_router"},
                     format("model.moe_bias_rule = {} needs model.moe_router = {}softmax, sigmoid or sqrtsoftplus, not {}", m.moe_bias_rule,
                            m.moe_bias_rule == "ema" ? "sigmoid_topk, " : "", m.moe_router));
  }
}

/// A branch of its own width.
void narrow_branch_fits(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.attn_out_dim > 0 && (m.attention != "gqa" || m.norm_placement != "pre" || m.block != "standard")) {
    findings.problem({"model.attn_out_dim", "model.attention", "model.norm_placement", "model.block"},
                     "model.attn_out_dim needs model.attention = 'gqa', model.norm_placement = 'pre' and model.block = 'standard'");
  }
  for (const auto& [key, on] :
       {std::pair("model.moe_beside_dense", m.moe_beside_dense), std::pair("model.moe_input_dim", m.moe_input_dim > 0)}) {
    if (on && !is_moe(m) && findings.given(key)) {
      findings.warn({key}, format("{} has no effect: it needs model.num_experts above 0", key));
    }
  }
}

void expert_options_fit_together(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!is_moe(m)) {
    return;
  }
  if (m.moe_beside_dense && (m.norm_placement == "post" || m.norm_placement.starts_with("parallel") || m.attn_out_dim > 0)) {
    findings.problem({"model.moe_beside_dense", "model.norm_placement", "model.attn_out_dim"},
                     "model.moe_beside_dense = true needs model.norm_placement = 'sandwich' or 'pre', and no model.attn_out_dim");
  }
  if (m.moe_weight_on_input && m.moe_top_k != 1) {
    findings.problem({"model.moe_weight_on_input", "model.moe_top_k"},
                     format("model.moe_weight_on_input = true needs model.moe_top_k = 1, not {}", m.moe_top_k));
  }
  if (m.moe_shared_gate && m.moe_shared_experts == 0) {
    findings.problem({"model.moe_shared_gate", "model.moe_shared_experts"},
                     "model.moe_shared_gate = true needs model.moe_shared_experts > 0");
  }
  if (m.moe_shared_ffn_dim && m.moe_shared_experts == 0) {
    findings.problem({"model.moe_shared_ffn_dim", "model.moe_shared_experts"},
                     format("model.moe_shared_ffn_dim ({}) needs model.moe_shared_experts > 0", *m.moe_shared_ffn_dim));
  }
  if (m.moe_ffn_dim && m.moe_expert_ffn_multiplier != 1) {
    findings.problem(
        {"model.moe_ffn_dim", "model.moe_expert_ffn_multiplier"},
        format("model.moe_ffn_dim ({}) and model.moe_expert_ffn_multiplier ({}) both say how wide an expert is: give one of the two",
               *m.moe_ffn_dim, m.moe_expert_ffn_multiplier));
  }
  if (m.moe_random_routing) {
    findings.warn(
        {"model.moe_random_routing"},
        "model.moe_random_routing = true sends tokens to random experts: use it for benchmarks only, the model does not learn to route");
  }
}

/// Keys that another key leaves without a reader.
void expert_keys_have_effect(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (!is_moe(m)) {
    return;
  }
  const auto idle = [&](const std::string& key, const std::string& why) {
    if (findings.given(key)) {
      findings.warn({key}, format("{} has no effect: {}", key, why));
    }
  };
  if (scores_by_sigmoid(m)) {
    idle("model.moe_aux_loss_weight",
         format("the router {} is balanced by model.moe_sequence_aux_loss_weight and model.moe_bias_rule", m.moe_router));
  }
  if (scores_by_softmax(m) && m.moe_sequence_aux_loss_weight > 0) {
    idle("model.moe_sequence_aux_loss_weight", format("the router {} is balanced by model.moe_aux_loss_weight", m.moe_router));
  }
  if (m.moe_sequence_aux_scope != "batch" && (scores_by_softmax(m) || m.moe_sequence_aux_loss_weight == 0)) {
    idle("model.moe_sequence_aux_scope",
         "there is no sequence balancing loss; model.moe_sequence_aux_loss_weight turns it on for sigmoid routers");
  }
  if (m.moe_norm_topk && m.moe_router != "softmax") {
    idle("model.moe_norm_topk", format("the router {} always divides its weights by their sum", m.moe_router));
  }
  if (moe_bias_rule(m) == "none") {
    const std::string why = "there is no selection bias; model.moe_bias_rule turns it on";
    if (m.moe_bias_schedule != "constant") {
      idle("model.moe_bias_schedule", why);
    }
    idle("model.moe_bias_rate", why);
  }
}

void look_ahead_fits_sequence(const Job& job, Findings& findings) {
  const ModelConfig& m = job.config.model;
  if (m.mtp_layers > 0 && m.mtp_layers >= job.config.train.seq_len) {
    findings.problem({"model.mtp_layers", "train.seq_len"},
                     format("model.mtp_layers ({}) looks past the end of train.seq_len ({})", m.mtp_layers, job.config.train.seq_len));
  }
  if (m.mtp_layers == 0 && findings.given("train.mtp_loss_weight")) {
    findings.warn({"train.mtp_loss_weight"}, "train.mtp_loss_weight has no effect: model.mtp_layers is 0");
  }
  if (m.mtp_layers > 0 && job.config.train.mtp_loss_weight == 0) {
    findings.warn({"model.mtp_layers", "train.mtp_loss_weight"},
                  format("train.mtp_loss_weight = 0: the {} layers of model.mtp_layers are not trained", m.mtp_layers));
  }
}

void experts_and_fused_kernels(const Job& job, Findings& findings) {
  if (!is_moe(job.config.model)) {
    return;
  }
  if (kernel_set(job.config.train) == KernelSet::fused) {
    findings.warn(
        {"model.num_experts", "train.compile_model"},
        "train.compile_model = true with experts (model.num_experts > 0): how many rows an expert gets is known at run time only, so "
        "these layers reach less of the device's speed than dense ones; false is slower still, it takes the plain twins");
  } else if (job.config.model.moe_impl == "grouped" && findings.given("model.moe_impl")) {
    findings.warn({"model.moe_impl", "train.compile_model"},
                  "model.moe_impl = \"grouped\" has no effect: train.compile_model = false takes one expert after the other");
  }
}

}  // namespace

std::vector<Rule> model_rules() {
  std::vector<Rule> rules{heads_divide_dim,         head_width_is_even,       kv_heads_divide_heads,       sizes_fit_64_bits,
                          derived_widths_fit,       top_k_fits_experts,       groups_divide_experts,       dense_layers_come_first,
                          bias_rule_fits_router,    narrow_branch_fits,       expert_options_fit_together, expert_keys_have_effect,
                          look_ahead_fits_sequence, experts_and_fused_kernels};
  for (const Rule rule : block_rules()) {
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace kf::config
