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

/// Gates are c_fc_0.
Rules exaone_rules() {
  const std::string theirs = "transformer.h.{l}.";
  Rules rules{{"transformer.wte.weight", "token_embedding.embedding.weight"},
              {"transformer.ln_f.weight", "norm.weight"},
              {"lm_head.weight", "output_head.proj.weight"},
              {theirs + "ln_1.weight", "layers.{l}.attention_norm.weight"},
              {theirs + "ln_2.weight", "layers.{l}.mlp_norm.weight"}};
  const auto add = [&](const std::string& name, const std::string& ours) {
    for (const char* part : {".weight", ".bias"}) {
      rules.push_back({theirs + name + part, "layers.{l}." + ours + part});
    }
  };
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    add(std::string("attn.attention.") + name, std::string("attention.") + name);
  }
  add("attn.attention.out_proj", "attention.o_proj");
  add("mlp.c_fc_0", "mlp.gate_proj");
  add("mlp.c_fc_1", "mlp.up_proj");
  add("mlp.c_proj", "mlp.down_proj");
  return rules;
}

Rules jais2_rules() { return embedding_rules() + norm_rules(true) + attention_rules(true) + gated_mlp_rules(true); }

Rules apertus_rules() {
  const std::string theirs = "model.layers.{l}.";
  return embedding_rules() + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(true) +
         Rules{{theirs + "attention_layernorm.weight", "layers.{l}.attention_norm.weight"},
               {theirs + "feedforward_layernorm.weight", "layers.{l}.mlp_norm.weight"},
               {theirs + "mlp.act_fn.alpha_p", "layers.{l}.mlp.alpha_p"},
               {theirs + "mlp.act_fn.alpha_n", "layers.{l}.mlp.alpha_n"}};
}

/// Its rotation turns the other way, which is ours with the halves of every head in each other's place.
Rules nanochat_rules() {
  Rules rules = embedding_rules() + attention_rules(true) +
                Rules{{"model.layers.{l}.mlp.fc1.weight", "layers.{l}.mlp.up_proj.weight"},
                      {"model.layers.{l}.mlp.fc2.weight", "layers.{l}.mlp.down_proj.weight"}};
  for (Rule& rule : rules) {
    if (rule.ours.find(".q_proj.") != std::string::npos || rule.ours.find(".k_proj.") != std::string::npos) {
      rule.layout = Layout::half_swapped;
    }
  }
  return rules;
}

Rules hyperclovax_rules() {
  return llama_rules() + Rules{{"model.layers.{l}.post_norm1.weight", "layers.{l}.attention_post_norm.weight"},
                               {"model.layers.{l}.post_norm2.weight", "layers.{l}.mlp_post_norm.weight"}};
}

Rules granite_swa_rules() { return llama_rules() + Rules{{"model.layers.{l}.self_attn.sinks", "layers.{l}.attention.sinks"}}; }

}  // namespace kf::huggingface
