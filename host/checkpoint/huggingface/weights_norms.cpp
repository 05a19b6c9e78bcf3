// Families that differ from Llama in their norms.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

Rules gemma2_rules() { return embedding_rules() + sandwich_rules() + attention_rules(true) + gated_mlp_rules(false); }

Rules vaultgemma_rules() {
  return embedding_rules() + attention_rules(true) + gated_mlp_rules(false) +
         Rules{{"model.layers.{l}.input_layernorm.weight", "layers.{l}.attention_norm.weight"},
               {"model.layers.{l}.pre_feedforward_layernorm.weight", "layers.{l}.mlp_norm.weight"}};
}

Rules gemma3_rules() { return gemma2_rules() + qk_norm_rules(); }

Rules olmo2_rules() { return embedding_rules() + post_norm_rules() + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false); }

/// With norms of queries and keys each head has its own.
Rules layernorm_rules() {
  const std::string theirs = "model.layers.{l}.self_attn.";
  return embedding_rules() + norm_rules(true) + attention_rules(true) + gated_mlp_rules(false) +
         Rules{{theirs + "q_layernorm.norms.{h}.weight", "layers.{l}.attention.q_norm.norms.{h}.weight"},
               {theirs + "k_layernorm.norms.{h}.weight", "layers.{l}.attention.k_norm.norms.{h}.weight"}};
}

Rules nemotron_rules() { return embedding_rules() + norm_rules(true) + attention_rules(true) + gated_mlp_rules(true); }

/// One norm for both branches.
Rules cohere_rules() {
  return embedding_rules() + Rules{{"model.layers.{l}.input_layernorm.weight", "layers.{l}.attention_norm.weight"}} +
         attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false);
}

}  // namespace kf::huggingface
