// Hunyuan 1, dense and with experts: norms of queries and keys behind the rotation.

#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// A table with an alpha stretches the base once and for all; files call it "dynamic".
void take_alpha_rope(Reader& c, std::int64_t head_dim) {
  const char* const key = c.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const Table* const table = c.table(key);
  const double theta = c.real("rope_theta", 10000);
  if (table == nullptr || table->find("alpha") == nullptr || table->find("alpha")->is_null()) {
    take_rope(c, {});
    return;
  }
  Reader inner(*table);
  const std::string type = inner.text("rope_type", inner.text("type", "dynamic"));
  if (type != "dynamic") {
    c.problem(format("{}.rope_type = '{}' beside an alpha is not understood; only 'dynamic' is", key, type));
  }
  const double width = static_cast<double>(head_dim);
  c.set("rope_theta", inner.real("rope_theta", theta) * std::pow(inner.real("alpha"), width / (width - 2)));
  inner.ignore({"type", "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"});  // not read beside an alpha
  for (const std::string& problem : inner.problems()) {
    c.problem(std::string(key) + "." + problem);
  }
}

void take_base(Reader& c) {
  const Shape shape = take_shape(c, false);
  const std::int64_t usual = head_width(shape.dim, shape.heads);
  const std::int64_t head = c.integer("head_dim", c.integer("attention_head_dim", usual));
  c.only("attention_head_dim", Node(head));
  c.set("head_dim", head);
  take_rms_norm(c, "rms_norm_eps", 1e-5);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  take_dropout(c, "attention_dropout", "dropout_attn");
  c.set("qk_norm", true);
  c.set("qk_norm_late", true);
  take_alpha_rope(c, head);
  // What the published files say besides; the classes know one value of each.
  c.only("use_qk_norm", Node(true));
  c.only("use_cla", Node(false));
  c.only("use_rotary_pos_emb", Node(true));
  c.only("position_embedding_xdrope", Node(false));
  c.only("norm_type", Node(std::string("rms")));
  c.only("mlp_bias", Node(false));
  c.only("add_classification_head", Node(false));
  c.ignore({"eod_token_id", "im_start_id", "im_end_id", "im_newline_id", "text_start_id", "text_end_id", "image_token_id", "mask_init_id",
            "num_media_embeds", "org_vocab_size", "pool_type", "class_num", "dense_list", "cla_share_factor", "pad_id"});
}

/// An integer, or a list that says the same for every layer.
std::int64_t same_everywhere(Reader& c, const char* key, std::int64_t fallback) {
  const Node* const node = c.node(key);
  const Array* const list = node != nullptr ? node->array() : nullptr;
  if (list == nullptr) {
    return c.integer(key, fallback);
  }
  const auto* const first = list->empty() ? nullptr : std::get_if<std::int64_t>(&list->front().value);
  for (const Node& entry : *list) {
    if (first == nullptr || entry != list->front()) {
      c.problem(format("{} = {} is understood where all layers have the same", key, brief(*node)));
      return fallback;
    }
  }
  return first != nullptr ? *first : fallback;
}

}  // namespace

void read_hunyuan_v1_dense(Reader& c) { take_base(c); }

/// Every layer has experts of width intermediate_size, and a shared one.
void read_hunyuan_v1_moe(Reader& c) {
  take_base(c);
  const std::int64_t width = c.integer("intermediate_size");
  c.set("num_experts", same_everywhere(c, "num_experts", 1));
  c.set("moe_top_k", same_everywhere(c, "moe_topk", 1));
  c.set("moe_ffn_dim", width);
  c.set("moe_router", std::string("softmax_topk"));
  c.set("moe_shared_experts", std::int64_t{1});
  c.set("moe_shared_ffn_dim", width);
  c.set("moe_aux_loss_weight", 0.0);  // the class has none
  if (same_everywhere(c, "moe_intermediate_size", width) != width) {
    c.problem("moe_intermediate_size other than intermediate_size is not understood");
  }
  if (same_everywhere(c, "num_shared_expert", 1) != 1) {
    c.problem("num_shared_expert other than 1 is not understood");
  }
  c.only("use_mixed_mlp_moe", Node(true));
  c.only("moe_layer_num_skipped", Node(std::int64_t{0}));
  c.only("norm_topk_prob", Node(true));
  c.only("routed_scaling_factor", Node(1.0));
  c.ignore({"output_router_logits", "capacity_factor", "moe_drop_tokens", "moe_random_routing_dropped_token", "group_limited_greedy"});
}

}  // namespace kf::config::huggingface
