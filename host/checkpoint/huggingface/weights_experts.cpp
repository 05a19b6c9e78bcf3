// Families with experts, and DeepSeek's latent attention.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {

/// w1 is the gate, w3 the linear part, w2 leads back.
Rules mixtral_rules() {
  const std::string theirs = "model.layers.{l}.block_sparse_moe.";
  return embedding_rules() + norm_rules(false) + attention_rules(false) +
         Rules{{theirs + "gate.weight", "layers.{l}.mlp.router.gate.weight"},
               {theirs + "experts.{e}.w1.weight", "layers.{l}.mlp.experts.{e}.gate_proj.weight"},
               {theirs + "experts.{e}.w3.weight", "layers.{l}.mlp.experts.{e}.up_proj.weight"},
               {theirs + "experts.{e}.w2.weight", "layers.{l}.mlp.experts.{e}.down_proj.weight"}};
}

/// qwen2_moe, qwen3_moe, olmoe.
Rules qwen_moe_rules() {
  Rules rules =
      embedding_rules() + norm_rules(false) + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false) + expert_rules("mlp");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    rules.push_back({std::string("model.layers.{l}.mlp.shared_expert.") + name + ".weight",
                     std::string("layers.{l}.mlp.shared_expert.") + name + ".weight"});
  }
  rules.push_back({"model.layers.{l}.mlp.shared_expert_gate.weight", "layers.{l}.mlp.shared_expert_gate.weight"});
  return rules;
}

/// Stacks of experts, (E, in, out) as ours, whose gate and up alternate.
Rules gpt_oss_rules() {
  const std::string theirs = "model.layers.{l}.mlp.";
  const std::string ours = "layers.{l}.mlp.";
  return embedding_rules() + norm_rules(false) + attention_rules(true) +
         Rules{{"model.layers.{l}.self_attn.sinks", "layers.{l}.attention.sinks"},
               {theirs + "router.weight", ours + "router.gate.weight"},
               {theirs + "router.bias", ours + "router.gate.bias"},
               {theirs + "experts.gate_up_proj", ours + "gate_w", Layout::even},
               {theirs + "experts.gate_up_proj", ours + "up_w", Layout::odd},
               {theirs + "experts.gate_up_proj_bias", ours + "gate_bias", Layout::even},
               {theirs + "experts.gate_up_proj_bias", ours + "up_bias", Layout::odd},
               {theirs + "experts.down_proj", ours + "down_w"},
               {theirs + "experts.down_proj_bias", ours + "down_bias"}};
}

namespace {

Rules shared_expert_rules(const std::string& theirs) {
  Rules rules;
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    rules.push_back({theirs + name + ".weight", std::string("layers.{l}.mlp.shared_expert.") + name + ".weight"});
  }
  return rules;
}

}  // namespace

/// gate above up in one stack, and so in the shared layer.
Rules granite_moe_rules() {
  const std::string theirs = "model.layers.{l}.";
  const std::string ours = "layers.{l}.mlp.";
  return embedding_rules() + norm_rules(false) + attention_rules(true) +
         Rules{{theirs + "block_sparse_moe.router.layer.weight", ours + "router.gate.weight"},
               {theirs + "block_sparse_moe.input_linear.weight", ours + "gate_w", Layout::upper},
               {theirs + "block_sparse_moe.input_linear.weight", ours + "up_w", Layout::lower},
               {theirs + "block_sparse_moe.output_linear.weight", ours + "down_w", Layout::swapped},
               {theirs + "shared_mlp.input_linear.weight", ours + "shared_expert.gate_proj.weight", Layout::rows},
               {theirs + "shared_mlp.input_linear.weight", ours + "shared_expert.up_proj.weight", Layout::rows},
               {theirs + "shared_mlp.output_linear.weight", ours + "shared_expert.down_proj.weight"}};
}

/// The same under the names of 2026.
Rules granite_moe_swa_rules() {
  const std::string theirs = "model.layers.{l}.block_sparse_moe.";
  const std::string ours = "layers.{l}.mlp.";
  return granite_moe_rules() + Rules{{"model.layers.{l}.self_attn.sinks", "layers.{l}.attention.sinks"},
                                     {theirs + "router.weight", ours + "router.gate.weight"},
                                     {theirs + "experts.gate_up_proj", ours + "gate_w", Layout::upper},
                                     {theirs + "experts.gate_up_proj", ours + "up_w", Layout::lower},
                                     {theirs + "experts.down_proj", ours + "down_w", Layout::swapped}};
}

Rules sigmoid_moe_rules() {
  return embedding_rules() + norm_rules(false) + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false) + expert_rules("mlp") +
         shared_expert_rules("model.layers.{l}.mlp.shared_experts.") +
         Rules{{"model.layers.{l}.mlp.e_score_correction_bias", "layers.{l}.mlp.router.expert_bias"},
               {"model.layers.{l}.mlp.gate.e_score_correction_bias", "layers.{l}.mlp.router.expert_bias"}};
}

/// q, k and v one below the other.
Rules sarvam_moe_rules() {
  const std::string theirs = "model.layers.{l}.";
  Rules rules = sigmoid_moe_rules() + Rules{{"model.word_embeddings.weight", "token_embedding.embedding.weight"},
                                            {theirs + "attention.dense.weight", "layers.{l}.attention.o_proj.weight"},
                                            {theirs + "attention.query_layernorm.weight", "layers.{l}.attention.q_norm.weight"},
                                            {theirs + "attention.key_layernorm.weight", "layers.{l}.attention.k_norm.weight"},
                                            {theirs + "mlp.gate.expert_bias", "layers.{l}.mlp.router.expert_bias"}};
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    for (const char* part : {".weight", ".bias"}) {
      rules.push_back({theirs + "attention.query_key_value" + part, std::string("layers.{l}.attention.") + name + part, Layout::rows});
    }
  }
  return rules;
}

Rules hy_v3_rules() {
  const std::string theirs = "model.layers.{l}.mlp.";
  return sigmoid_moe_rules() + shared_expert_rules(theirs + "shared_mlp.") +
         Rules{{theirs + "router.gate.weight", "layers.{l}.mlp.router.gate.weight"},
               {theirs + "expert_bias", "layers.{l}.mlp.router.expert_bias"}};
}

Rules ernie_moe_rules() {
  return sigmoid_moe_rules() +
         Rules{{"model.layers.{l}.mlp.moe_statics.e_score_correction_bias", "layers.{l}.mlp.router.expert_bias", Layout::flat}};
}

/// Dense and with experts.
Rules hunyuan_rules() {
  const std::string theirs = "model.layers.{l}.";
  return embedding_rules() + norm_rules(false) + attention_rules(true) + gated_mlp_rules(true) + expert_rules("mlp") +
         shared_expert_rules(theirs + "mlp.shared_mlp.") +
         Rules{{theirs + "mlp.gate.wg.weight", "layers.{l}.mlp.router.gate.weight"},
               {theirs + "self_attn.query_layernorm.weight", "layers.{l}.attention.q_norm.weight"},
               {theirs + "self_attn.key_layernorm.weight", "layers.{l}.attention.k_norm.weight"}};
}

/// Blocks of rows, one an expert: w1 is the gate, v1 the linear part, w2 leads back as (F, C).
Rules dbrx_rules() {
  const std::string theirs = "transformer.blocks.{l}.";
  const std::string ours = "layers.{l}.";
  return Rules{{"transformer.wte.weight", "token_embedding.embedding.weight"},
               {"transformer.norm_f.weight", "norm.weight"},
               {"lm_head.weight", "output_head.proj.weight"},
               {theirs + "norm_attn_norm.norm_1.weight", ours + "attention_norm.weight"},
               {theirs + "norm_attn_norm.norm_2.weight", ours + "mlp_norm.weight"},
               {theirs + "norm_attn_norm.attn.Wqkv.weight", ours + "attention.q_proj.weight", Layout::rows},
               {theirs + "norm_attn_norm.attn.Wqkv.weight", ours + "attention.k_proj.weight", Layout::rows},
               {theirs + "norm_attn_norm.attn.Wqkv.weight", ours + "attention.v_proj.weight", Layout::rows},
               {theirs + "norm_attn_norm.attn.out_proj.weight", ours + "attention.o_proj.weight"},
               {theirs + "ffn.router.layer.weight", ours + "mlp.router.gate.weight"},
               {theirs + "ffn.experts.mlp.w1", ours + "mlp.gate_w", Layout::stacked_swapped},
               {theirs + "ffn.experts.mlp.v1", ours + "mlp.up_w", Layout::stacked_swapped},
               {theirs + "ffn.experts.mlp.w2", ours + "mlp.down_w", Layout::stacked}};
}

/// Stacks (E, in, out) as ours, gate before up.
Rules llama4_rules() {
  const std::string theirs = "model.layers.{l}.feed_forward.";
  const std::string ours = "layers.{l}.mlp.";
  Rules rules = embedding_rules() + norm_rules(false) + attention_rules(true) + shared_expert_rules(theirs + "shared_expert.");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {  // of dense layers
    rules.push_back({theirs + name + ".weight", ours + name + ".weight"});
  }
  return rules + Rules{{theirs + "router.weight", ours + "router.gate.weight"},
                       {theirs + "experts.gate_up_proj", ours + "gate_w", Layout::first_half},
                       {theirs + "experts.gate_up_proj", ours + "up_w", Layout::second_half},
                       {theirs + "experts.down_proj", ours + "down_w"}};
}

/// A dense layer beside stacks of experts, (E, out, in), gate above up.
Rules gemma4_rules() {
  const std::string theirs = "model.layers.{l}.";
  const std::string ours = "layers.{l}.";
  return gemma3_rules() + Rules{{theirs + "layer_scalar", ours + "layer_scalar"},
                                {theirs + "post_feedforward_layernorm_1.weight", ours + "dense_post_norm.weight"},
                                {theirs + "post_feedforward_layernorm_2.weight", ours + "experts_post_norm.weight"},
                                {theirs + "pre_feedforward_layernorm_2.weight", ours + "experts.input_norm.weight"},
                                {theirs + "router.proj.weight", ours + "experts.router.gate.weight"},
                                {theirs + "router.scale", ours + "experts.router.scale"},
                                {theirs + "router.per_expert_scale", ours + "experts.router.expert_scale"},
                                {theirs + "experts.gate_up_proj", ours + "experts.gate_w", Layout::upper},
                                {theirs + "experts.gate_up_proj", ours + "experts.up_w", Layout::lower},
                                {theirs + "experts.down_proj", ours + "experts.down_w", Layout::swapped}};
}

Rules afmoe_rules() {
  const std::string theirs = "model.layers.{l}.";
  return embedding_rules() + attention_rules(true) + qk_norm_rules() + gated_mlp_rules(false) + expert_rules("mlp") +
         shared_expert_rules(theirs + "mlp.shared_experts.") +
         Rules{{theirs + "input_layernorm.weight", "layers.{l}.attention_norm.weight"},
               {theirs + "self_attn.gate_proj.weight", "layers.{l}.attention.gate_proj.weight"},
               {theirs + "post_attention_layernorm.weight", "layers.{l}.attention_post_norm.weight"},
               {theirs + "pre_mlp_layernorm.weight", "layers.{l}.mlp_norm.weight"},
               {theirs + "post_mlp_layernorm.weight", "layers.{l}.mlp_post_norm.weight"},
               {theirs + "mlp.router.gate.weight", "layers.{l}.mlp.router.gate.weight"},
               {theirs + "mlp.expert_bias", "layers.{l}.mlp.router.expert_bias"}};
}

Rules minimax_m2_rules() {
  return mixtral_rules() + qk_norm_rules() +
         Rules{{"model.layers.{l}.block_sparse_moe.e_score_correction_bias", "layers.{l}.mlp.router.expert_bias"}};
}

Rules flex_olmo_rules() { return embedding_rules() + post_norm_rules() + attention_rules(true) + qk_norm_rules() + expert_rules("mlp"); }

Rules deepseek_rules() {
  Rules rules = embedding_rules() + norm_rules(false) + gated_mlp_rules(true) + expert_rules("mlp");
  const auto attention = [&](const std::string& theirs, const std::string& name) {
    rules.push_back({"model.layers.{l}.self_attn." + theirs + ".weight", "layers.{l}.attention." + name + ".weight"});
    rules.push_back({"model.layers.{l}.self_attn." + theirs + ".bias", "layers.{l}.attention." + name + ".bias"});
  };
  attention("q_proj", "q_proj");
  attention("q_a_proj", "q_a_proj");
  attention("q_a_layernorm", "q_a_norm");
  attention("q_b_proj", "q_b_proj");
  attention("kv_a_proj_with_mqa", "kv_a_proj");
  attention("kv_a_layernorm", "kv_a_norm");
  attention("kv_b_proj", "kv_b_proj");
  attention("o_proj", "o_proj");
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    rules.push_back({std::string("model.layers.{l}.mlp.shared_experts.") + name + ".weight",
                     std::string("layers.{l}.mlp.shared_expert.") + name + ".weight"});
  }
  rules.push_back({"model.layers.{l}.mlp.gate.e_score_correction_bias", "layers.{l}.mlp.router.expert_bias"});
  return rules;
}

}  // namespace kf::huggingface
