#include "checkpoint/huggingface/rules.h"

#include "checkpoint/huggingface/tables.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::huggingface {
namespace {

const std::string kLayer = "model.layers.{l}.";

/// weight, and bias if there is one.
void add(Rules& rules, const std::string& theirs, const std::string& ours, bool bias) {
  rules.push_back({kLayer + theirs + ".weight", "layers.{l}." + ours + ".weight"});
  if (bias) {
    rules.push_back({kLayer + theirs + ".bias", "layers.{l}." + ours + ".bias"});
  }
}

}  // namespace

Rules operator+(Rules a, const Rules& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Rules embedding_rules() {
  return {{"model.embed_tokens.weight", "token_embedding.embedding.weight"},
          {"model.norm.weight", "norm.weight"},
          {"model.norm.bias", "norm.bias"},
          {"lm_head.weight", "output_head.proj.weight"}};
}

Rules norm_rules(bool bias) {
  Rules rules;
  add(rules, "input_layernorm", "attention_norm", bias);
  add(rules, "post_attention_layernorm", "mlp_norm", bias);
  return rules;
}

Rules post_norm_rules() {
  Rules rules;
  add(rules, "post_attention_layernorm", "attention_post_norm", false);
  add(rules, "post_feedforward_layernorm", "mlp_post_norm", false);
  return rules;
}

Rules sandwich_rules() {
  Rules rules = post_norm_rules();
  add(rules, "input_layernorm", "attention_norm", false);
  add(rules, "pre_feedforward_layernorm", "mlp_norm", false);
  return rules;
}

Rules attention_rules(bool bias) {
  Rules rules;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    add(rules, std::string("self_attn.") + name, std::string("attention.") + name, bias);
  }
  return rules;
}

Rules qk_norm_rules() {
  Rules rules;
  add(rules, "self_attn.q_norm", "attention.q_norm", false);
  add(rules, "self_attn.k_norm", "attention.k_norm", false);
  return rules;
}

Rules gated_mlp_rules(bool bias) {
  Rules rules;
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    add(rules, std::string("mlp.") + name, std::string("mlp.") + name, bias);
  }
  return rules;
}

Rules expert_rules(const std::string& block) {
  Rules rules;
  add(rules, block + ".gate", "mlp.router.gate", false);
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    add(rules, block + ".experts.{e}." + name, std::string("mlp.experts.{e}.") + name, false);
  }
  return rules;
}

Rules rules_for(const std::string& model_type, std::int64_t shared) {
  constexpr std::string_view one = ".shared_expert.";
  Rules out;
  for (const Rule& rule : rules_of(model_type)) {
    const std::size_t at = rule.ours.find(one);
    if (shared == 0 || at == std::string::npos) {
      out.push_back(rule);
      continue;
    }
    const Layout side = rule.ours.ends_with("down_proj.weight") ? Layout::columns : Layout::rows;
    for (std::int64_t i = 0; i < shared; ++i) {
      Rule numbered = rule;
      numbered.ours.insert(at + one.size(), std::to_string(i) + ".");
      numbered.layout = rule.layout == Layout::same ? side : rule.layout;
      out.push_back(numbered);
    }
  }
  return out;
}

const Rules& rules_of(const std::string& model_type) {
  const auto found = tables().find(model_type);
  if (found == tables().end()) {
    std::vector<std::string> names;
    for (const auto& [name, table] : tables()) {
      names.push_back(name);
    }
    fail(Code::checkpoint, "weights of the model_type '{}' are not understood; have: {}", model_type, join(names, ", "));
  }
  return found->second;
}

}  // namespace kf::huggingface
