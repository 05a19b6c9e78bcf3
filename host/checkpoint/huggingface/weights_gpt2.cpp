// GPT-2 and StarCoder 2.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

/// Matrices are stored (in, out); c_attn is q, k and v.
Rules gpt2_rules() {
  Rules rules{{"transformer.wte.weight", "token_embedding.embedding.weight"},
              {"transformer.wpe.weight", "position_embedding.embedding.weight"},
              {"transformer.ln_f.weight", "norm.weight"},
              {"transformer.ln_f.bias", "norm.bias"},
              {"lm_head.weight", "output_head.proj.weight"}};
  const auto add = [&](const std::string& theirs, const std::string& ours, Layout matrix, Layout bias) {
    rules.push_back({"transformer.h.{l}." + theirs + ".weight", "layers.{l}." + ours + ".weight", matrix});
    rules.push_back({"transformer.h.{l}." + theirs + ".bias", "layers.{l}." + ours + ".bias", bias});
  };
  add("ln_1", "attention_norm", Layout::same, Layout::same);
  add("ln_2", "mlp_norm", Layout::same, Layout::same);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    add("attn.c_attn", std::string("attention.") + name, Layout::rows_of_transposed, Layout::rows);
  }
  add("attn.c_proj", "attention.o_proj", Layout::transposed, Layout::same);
  add("mlp.c_fc", "mlp.up_proj", Layout::transposed, Layout::same);
  add("mlp.c_proj", "mlp.down_proj", Layout::transposed, Layout::same);
  return rules;
}

Rules starcoder2_rules() {
  return embedding_rules() + norm_rules(true) + attention_rules(true) +
         Rules{{"model.layers.{l}.mlp.c_fc.weight", "layers.{l}.mlp.up_proj.weight"},
               {"model.layers.{l}.mlp.c_fc.bias", "layers.{l}.mlp.up_proj.bias"},
               {"model.layers.{l}.mlp.c_proj.weight", "layers.{l}.mlp.down_proj.weight"},
               {"model.layers.{l}.mlp.c_proj.bias", "layers.{l}.mlp.down_proj.bias"}};
}

}  // namespace kf::huggingface
