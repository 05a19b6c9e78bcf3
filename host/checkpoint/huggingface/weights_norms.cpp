// Families that differ from Llama in their norms.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

Rules gemma2_rules() { return embedding_rules() + sandwich_rules() + attention_rules(true) + gated_mlp_rules(false); }

Rules gemma3_rules() { return gemma2_rules() + qk_norm_rules(); }

Rules olmo2_rules() { return embedding_rules() + post_norm_rules() + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false); }

Rules layernorm_rules() { return embedding_rules() + norm_rules(true) + attention_rules(true) + gated_mlp_rules(false); }

Rules nemotron_rules() { return embedding_rules() + norm_rules(true) + attention_rules(true) + gated_mlp_rules(true); }

/// One norm for both branches.
Rules cohere_rules() {
  return embedding_rules() + Rules{{"model.layers.{l}.input_layernorm.weight", "layers.{l}.attention_norm.weight"}} +
         attention_rules(true) + gated_mlp_rules(false);
}

}  // namespace kf::huggingface
