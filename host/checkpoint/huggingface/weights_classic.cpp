// GPT-J, GPT-Neo, GPT-NeoX, Phi 1 and 2, Persimmon, MPT, Falcon, BLOOM, OPT, StarCoder 1.

#include "checkpoint/huggingface/tables.h"

namespace kf::huggingface {
namespace {

/// weight and bias under `base`; files without a bias have no such tensor.
class Table {
 public:
  Table(std::string theirs, Rules rules) : theirs_(std::move(theirs)), rules_(std::move(rules)) {}

  Table& add(const std::string& theirs, const std::string& ours, Layout layout = Layout::same) {
    for (const char* part : {".weight", ".bias"}) {
      rules_.push_back({theirs_ + theirs + part, "layers.{l}." + ours + part, layout});
    }
    return *this;
  }
  /// q, k and v of a group of heads lie together, group after group.
  Table& add_groups(const std::string& theirs) {
    return add(theirs, "attention.q_proj", Layout::group_q)
        .add(theirs, "attention.k_proj", Layout::group_k)
        .add(theirs, "attention.v_proj", Layout::group_v);
  }
  Table& add_each(const std::string& theirs, const std::string& ours) {
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
      add(theirs + name, ours + name);
    }
    return *this;
  }
  Rules rules() const { return rules_; }

 private:
  std::string theirs_;
  Rules rules_;
};

Rules ends(const std::string& base, const std::string& embedding, const std::string& norm) {
  return {{base + embedding + ".weight", "token_embedding.embedding.weight"},
          {base + norm + ".weight", "norm.weight"},
          {base + norm + ".bias", "norm.bias"},
          {"lm_head.weight", "output_head.proj.weight"},
          {"lm_head.bias", "output_head.proj.bias"}};
}

}  // namespace

Rules gptj_rules() {
  return Table("transformer.h.{l}.", ends("transformer.", "wte", "ln_f"))
      .add("ln_1", "attention_norm")
      .add_each("attn.", "attention.")
      .add("attn.out_proj", "attention.o_proj")
      .add("mlp.fc_in", "mlp.up_proj")
      .add("mlp.fc_out", "mlp.down_proj")
      .rules();
}

Rules codegen_rules() {
  return Table("transformer.h.{l}.", ends("transformer.", "wte", "ln_f"))
      .add("ln_1", "attention_norm")
      .add("attn.qkv_proj", "attention.q_proj", Layout::shard_q)
      .add("attn.qkv_proj", "attention.k_proj", Layout::shard_k)
      .add("attn.qkv_proj", "attention.v_proj", Layout::shard_v)
      .add("attn.out_proj", "attention.o_proj")
      .add("mlp.fc_in", "mlp.up_proj")
      .add("mlp.fc_out", "mlp.down_proj")
      .rules();
}

Rules gpt_neo_rules() {
  return Table("transformer.h.{l}.",
               ends("transformer.", "wte", "ln_f") + Rules{{"transformer.wpe.weight", "position_embedding.embedding.weight"}})
      .add("ln_1", "attention_norm")
      .add("ln_2", "mlp_norm")
      .add_each("attn.attention.", "attention.")
      .add("attn.attention.out_proj", "attention.o_proj")
      .add("mlp.c_fc", "mlp.up_proj")
      .add("mlp.c_proj", "mlp.down_proj")
      .rules();
}

Rules persimmon_rules() {
  return Table("model.layers.{l}.", ends("model.", "embed_tokens", "final_layernorm"))
      .add("input_layernorm", "attention_norm")
      .add("post_attention_layernorm", "mlp_norm")
      .add_groups("self_attn.query_key_value")
      .add("self_attn.dense", "attention.o_proj")
      .add("self_attn.q_layernorm", "attention.q_norm")
      .add("self_attn.k_layernorm", "attention.k_norm")
      .add("mlp.dense_h_to_4h", "mlp.up_proj")
      .add("mlp.dense_4h_to_h", "mlp.down_proj")
      .rules();
}

/// q, k and v one below the other; no bias anywhere.
Rules mpt_rules() {
  return Table("transformer.blocks.{l}.", ends("transformer.", "wte", "norm_f"))
      .add("norm_1", "attention_norm")
      .add("norm_2", "mlp_norm")
      .add("attn.Wqkv", "attention.q_proj", Layout::rows)
      .add("attn.Wqkv", "attention.k_proj", Layout::rows)
      .add("attn.Wqkv", "attention.v_proj", Layout::rows)
      .add("attn.out_proj", "attention.o_proj")
      .add("ffn.up_proj", "mlp.up_proj")
      .add("ffn.down_proj", "mlp.down_proj")
      .rules();
}

Rules gpt_neox_rules() {
  return Table("gpt_neox.layers.{l}.",
               ends("gpt_neox.", "embed_in", "final_layer_norm") + Rules{{"embed_out.weight", "output_head.proj.weight"}})
      .add("input_layernorm", "attention_norm")
      .add("post_attention_layernorm", "mlp_norm")
      .add_groups("attention.query_key_value")
      .add("attention.dense", "attention.o_proj")
      .add("mlp.dense_h_to_4h", "mlp.up_proj")
      .add("mlp.dense_4h_to_h", "mlp.down_proj")
      .rules();
}

Rules phi_rules() {
  return Table("model.layers.{l}.", ends("model.", "embed_tokens", "final_layernorm"))
      .add("input_layernorm", "attention_norm")
      .add_each("self_attn.", "attention.")
      .add("self_attn.dense", "attention.o_proj")
      .add("self_attn.q_layernorm", "attention.q_norm")
      .add("self_attn.k_layernorm", "attention.k_norm")
      .add("mlp.fc1", "mlp.up_proj")
      .add("mlp.fc2", "mlp.down_proj")
      .rules();
}

/// Both kinds of norms: one or two.
Rules falcon_rules() {
  return Table("transformer.h.{l}.", ends("transformer.", "word_embeddings", "ln_f"))
      .add("input_layernorm", "attention_norm")
      .add("post_attention_layernorm", "mlp_norm")
      .add("ln_attn", "attention_norm")
      .add("ln_mlp", "mlp_norm")
      .add_groups("self_attention.query_key_value")
      .add("self_attention.dense", "attention.o_proj")
      .add("mlp.dense_h_to_4h", "mlp.up_proj")
      .add("mlp.dense_4h_to_h", "mlp.down_proj")
      .rules();
}

Rules bloom_rules() {
  return falcon_rules() + Rules{{"transformer.word_embeddings_layernorm.weight", "embed_norm.weight"},
                                {"transformer.word_embeddings_layernorm.bias", "embed_norm.bias"}};
}

/// The first two rows of the position table belong to no position.
Rules opt_rules() {
  return Table("model.decoder.layers.{l}.",
               ends("model.decoder.", "embed_tokens", "final_layer_norm") +
                   Rules{{"model.decoder.embed_positions.weight", "position_embedding.embedding.weight", Layout::behind_two}})
      .add("self_attn_layer_norm", "attention_norm")
      .add("final_layer_norm", "mlp_norm")
      .add_each("self_attn.", "attention.")
      .add("self_attn.out_proj", "attention.o_proj")
      .add("fc1", "mlp.up_proj")
      .add("fc2", "mlp.down_proj")
      .rules();
}

/// With one key and value head q, k and v lie one below the other, which is one group.
Rules gpt_bigcode_rules() {
  return Table("transformer.h.{l}.",
               ends("transformer.", "wte", "ln_f") + Rules{{"transformer.wpe.weight", "position_embedding.embedding.weight"}})
      .add("ln_1", "attention_norm")
      .add("ln_2", "mlp_norm")
      .add_groups("attn.c_attn")
      .add("attn.c_proj", "attention.o_proj")
      .add("mlp.c_fc", "mlp.up_proj")
      .add("mlp.c_proj", "mlp.down_proj")
      .rules();
}

}  // namespace kf::huggingface
