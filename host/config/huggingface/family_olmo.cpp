// OLMo 1, 2 and 3, and EXAONE 4: norms after the branches.

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"

namespace kf::config::huggingface {
namespace {

Shape take_base(Reader& c, bool tied) {
  const Shape shape = take_shape(c, tied);
  take_activation(c, "hidden_act", "silu", true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  return shape;
}

Shape take_post_norm(Reader& c, const std::string& qk_norm) {
  const Shape shape = take_base(c, false);
  take_rms_norm(c, "rms_norm_eps", 1e-5);
  c.set("norm_placement", std::string("post"));
  c.set("qk_norm", true);
  c.set("qk_norm_kind", qk_norm);
  take_head_dim(c);
  return shape;
}

}  // namespace

/// LayerNorm without weight and bias.
void read_olmo(Reader& c) {
  take_base(c, false);
  c.set("norm_type", std::string("layernorm"));
  c.set("norm_eps", 1e-5);
  c.set("norm_weight", false);
  c.set("norm_bias", false);
  take_head_dim(c);
  take_attention_bias(c, false, "all");
  take_clip(c);
  take_rope(c, {});
}

void read_olmo2(Reader& c) {
  take_post_norm(c, "full");
  take_attention_bias(c, false, "all");
  take_rope(c, {});
}

void read_olmo3(Reader& c) {
  const Shape shape = take_post_norm(c, "full");
  take_attention_bias(c, false, "all");
  take_layer_types(c, every_nth_global(shape.layers, 4), sliding_window_or(c, 4096));
  take_two_ropes(c, 500000, 0);
}

/// Every sliding_window_pattern-th layer is global and does not rotate.
void read_exaone4(Reader& c) {
  const Shape shape = take_post_norm(c, "head");
  take_global_without_rotation(c, shape.layers, 0);
  take_rope(c, {});
}

}  // namespace kf::config::huggingface
