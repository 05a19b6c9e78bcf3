// Qwen 2, 2.5 and 3, dense.

#include <algorithm>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"

namespace kf::config::huggingface {
namespace {

/// Sliding windows from max_window_layers on, if use_sliding_window.
void take_windows(Reader& c, std::int64_t layers) {
  const bool on = c.flag("use_sliding_window", false);
  const std::int64_t window = c.integer("sliding_window", 0);
  const std::int64_t first = c.integer("max_window_layers", 28);
  std::vector<std::string> kinds = all_layers(layers, "global");
  for (std::int64_t i = std::max<std::int64_t>(first, 0); on && window > 0 && i < layers; ++i) {
    kinds[static_cast<std::size_t>(i)] = "local";
  }
  take_layer_types(c, kinds, on ? window : 0);
}

Shape take_base(Reader& c) {
  const Shape shape = take_shape(c, false);
  take_rms_norm(c, "rms_norm_eps", 1e-6);
  take_activation(c, "hidden_act", "silu", true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_windows(c, shape.layers);
  take_rope(c, {});
  return shape;
}

}  // namespace

void read_qwen2(Reader& c) {
  take_base(c);
  take_head_dim(c);
  c.set("attn_bias", std::string("qkv"));
  c.ignore({"use_mrope"});
}

void read_qwen3(Reader& c) {
  take_base(c);
  take_head_dim(c, 128);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
}

}  // namespace kf::config::huggingface
