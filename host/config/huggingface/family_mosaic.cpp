// MPT and DBRX: settings of the attention and the experts in tables of their own.

#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// A table of the file, read key by key; its problems go to the outer reader under its name.
class InnerTable {
 public:
  InnerTable(Reader& outer, std::string name)
      : outer_(outer), name_(std::move(name)), values_(copy_of(outer.table(name_))), reader_(values_) {
    ignore_bookkeeping(reader_);
  }
  ~InnerTable() {
    for (const std::string& problem : reader_.problems()) {
      outer_.problem(name_ + "." + problem);
    }
    for (const std::string& note : reader_.notes()) {
      outer_.note(name_ + "." + note);
    }
  }
  InnerTable(const InnerTable&) = delete;
  InnerTable& operator=(const InnerTable&) = delete;
  Reader* operator->() { return &reader_; }
  Reader& operator*() { return reader_; }
  bool is_null(const char* key) const { return values_.find(key) != nullptr && values_.find(key)->is_null(); }

 private:
  static Table copy_of(const Table* table) { return table != nullptr ? *table : Table(); }

  Reader& outer_;
  std::string name_;
  Table values_;
  Reader reader_;
};

std::int64_t take_mosaic_shape(Reader& c, bool tied) {
  const std::int64_t dim = c.integer("d_model");
  c.set("dim", dim);
  c.set("n_layers", c.integer("n_layers"));
  c.set("n_heads", c.integer("n_heads"));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("max_seq_len", 2048));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", tied));
  c.set("norm_type", std::string("layernorm"));
  c.set("norm_bias", false);
  return dim;
}

void no_dropout(Reader& c, const char* key) {
  if (c.real(key, 0) != 0) {
    c.problem(format("{} above 0 is not understood: the class does not read it", key));
  }
}

}  // namespace

/// ALiBi, no bias anywhere. The class reads no more of the file than this; what it leaves out must have its usual value.
void read_mpt(Reader& c) {
  const std::int64_t dim = take_mosaic_shape(c, true);
  c.set("norm_eps", c.real("layer_norm_epsilon", 1e-5));
  c.set("activation", std::string("gelu"));
  c.set("ffn_hidden_dim", 4 * dim);
  c.only("expansion_ratio", Node(std::int64_t{4}));
  c.set("pos_embedding", std::string("alibi"));
  no_dropout(c, "emb_pdrop");
  no_dropout(c, "resid_pdrop");
  c.only("logit_scale", Node());
  c.only("no_bias", Node(true));
  c.only("norm_type", Node(std::string("low_precision_layernorm")));
  c.only("learned_pos_emb", Node(true));
  c.only("embedding_fraction", Node(1.0));
  c.ignore({"init_device", "init_config", "verbose", "use_pad_tok_in_ffn"});
  InnerTable attention(c, "attn_config");
  if (const std::optional<double> scale = positive_real(*attention, "softmax_scale")) {
    c.set("attn_scale", *scale);
  }
  if (const std::optional<double> limit = positive_real(*attention, "clip_qkv")) {
    c.set("attn_qkv_clip", *limit);
  }
  if (const double rate = dropout_rate(*attention, "attn_pdrop"); rate > 0) {  // of both branches, too
    c.set("dropout_attn", rate);
    c.set("dropout_resid", rate);
  }
  attention->only("attn_type", Node(std::string("multihead_attention")));
  attention->only("alibi", Node(true));
  attention->only("alibi_bias_max", Node(std::int64_t{8}));
  attention->only("prefix_lm", Node(false));
  attention->only("qk_ln", Node(false));
  attention->only("attn_uses_sequence_id", Node(false));
  attention->ignore({"attn_impl"});
}

/// Experts in every layer, clipped queries, keys and values, LayerNorm without a bias.
void read_dbrx(Reader& c) {
  take_mosaic_shape(c, false);
  c.set("norm_eps", 1e-5);
  take_dropout(c, "resid_pdrop", "dropout_resid");
  no_dropout(c, "emb_pdrop");
  c.ignore({"output_router_logits"});
  double theta = 10000;
  std::optional<double> attention_theta;
  {
    InnerTable attention(c, "attn_config");
    const std::int64_t kv = attention->integer("kv_n_heads", 1);
    c.set("n_kv_heads", kv);
    c.only("num_key_value_heads", Node(kv));
    if (const std::optional<double> limit = positive_real(*attention, "clip_qkv")) {
      c.set("attn_qkv_clip", *limit);
    }
    if (const double rate = dropout_rate(*attention, "attn_pdrop"); rate > 0) {
      c.set("dropout_attn", rate);
    }
    attention_theta = attention->maybe_real("rope_theta");
    theta = attention_theta.value_or(theta);
  }
  InnerTable experts(c, "ffn_config");
  const std::int64_t width = experts->integer("ffn_hidden_size", 3584);
  c.set("ffn_hidden_dim", width);
  c.set("moe_ffn_dim", width);
  c.set("num_experts", experts->integer("moe_num_experts", 4));
  c.set("moe_top_k", experts->integer("moe_top_k", 1));
  c.set("moe_aux_loss_weight", experts->real("moe_loss_weight", 0.01));
  const bool normalised = !experts.is_null("moe_normalize_expert_weights");
  if (experts->real("moe_normalize_expert_weights", 1) != 1) {
    c.problem("ffn_config.moe_normalize_expert_weights other than 1 and null is not understood");
  }
  c.set("moe_router", std::string(normalised ? "softmax_topk" : "softmax"));
  if (experts->real("moe_jitter_eps", 0) != 0) {
    c.problem("ffn_config.moe_jitter_eps above 0 is not understood");
  }
  if (const Table* const activation = experts->table("ffn_act_fn")) {
    Reader inner(*activation);
    inner.only("name", Node(std::string("silu")));
    for (const std::string& problem : inner.problems()) {
      c.problem("ffn_config.ffn_act_fn." + problem);
    }
  }
  experts->only("hidden_size", *c.model().find("dim"));
  experts->ignore({"uniform_expert_assignment"});
  const bool given = c.has("rope_parameters");
  take_rope(c, {theta});
  if (given && attention_theta && *c.model().find("rope_theta") != Node(*attention_theta)) {
    c.problem("attn_config.rope_theta and rope_parameters.rope_theta differ");
  }
}

}  // namespace kf::config::huggingface
