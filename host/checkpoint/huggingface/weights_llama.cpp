// Llama's names, which most families kept.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

Rules llama_rules() { return embedding_rules() + norm_rules(false) + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(true); }

/// q, k, v in one matrix, gate and up in another.
Rules phi3_rules() {
  return embedding_rules() + norm_rules(false) +
         Rules{{"model.layers.{l}.self_attn.qkv_proj.weight", "layers.{l}.attention.q_proj.weight", Layout::rows},
               {"model.layers.{l}.self_attn.qkv_proj.weight", "layers.{l}.attention.k_proj.weight", Layout::rows},
               {"model.layers.{l}.self_attn.qkv_proj.weight", "layers.{l}.attention.v_proj.weight", Layout::rows},
               {"model.layers.{l}.self_attn.o_proj.weight", "layers.{l}.attention.o_proj.weight"},
               {"model.layers.{l}.mlp.gate_up_proj.weight", "layers.{l}.mlp.gate_proj.weight", Layout::rows},
               {"model.layers.{l}.mlp.gate_up_proj.weight", "layers.{l}.mlp.up_proj.weight", Layout::rows},
               {"model.layers.{l}.mlp.down_proj.weight", "layers.{l}.mlp.down_proj.weight"}};
}

namespace {

Rules glm_base() {
  return embedding_rules() + attention_rules(true) +
         Rules{{"model.layers.{l}.mlp.gate_up_proj.weight", "layers.{l}.mlp.gate_proj.weight", Layout::rows},
               {"model.layers.{l}.mlp.gate_up_proj.weight", "layers.{l}.mlp.up_proj.weight", Layout::rows},
               {"model.layers.{l}.mlp.down_proj.weight", "layers.{l}.mlp.down_proj.weight"}};
}

}  // namespace

Rules glm_rules() { return glm_base() + norm_rules(false); }

Rules glm4_rules() {
  return glm_base() + Rules{{"model.layers.{l}.input_layernorm.weight", "layers.{l}.attention_norm.weight"},
                            {"model.layers.{l}.post_self_attn_layernorm.weight", "layers.{l}.attention_post_norm.weight"},
                            {"model.layers.{l}.post_attention_layernorm.weight", "layers.{l}.mlp_norm.weight"},
                            {"model.layers.{l}.post_mlp_layernorm.weight", "layers.{l}.mlp_post_norm.weight"}};
}

}  // namespace kf::huggingface
