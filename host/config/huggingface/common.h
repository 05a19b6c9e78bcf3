#pragma once
// What the families of config.json share.

#include <optional>
#include <string>
#include <vector>

#include "config/huggingface/reader.h"

namespace kf::config::huggingface {

/// Keys that no family's numbers depend on: token ids, versions, what generation does by default.
void ignore_bookkeeping(Reader& c);

/// hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, vocab_size, intermediate_size, max_position_embeddings,
/// initializer_range, tie_word_embeddings.
struct Shape {
  std::int64_t layers = 0;  // at most kMostLayers
  std::int64_t heads = 0;
  std::int64_t dim = 0;
};
struct ShapeKeys {
  const char* layers = "num_hidden_layers";
  const char* width = "intermediate_size";
};
Shape take_shape(Reader& c, bool tied, const ShapeKeys& keys = {});
/// Whichever of two names of one key the file has; both at once are a problem. `newer` where it has none.
const char* one_of_names(Reader& c, const char* older, const char* newer);
/// dim / heads; 1 where they make no width, which the rules for the model refuse.
std::int64_t head_width(std::int64_t dim, std::int64_t heads);
/// head_dim, where the family knows it; absent takes `fallback`, 0 and null stand for hidden_size / num_attention_heads.
void take_head_dim(Reader& c, std::int64_t fallback = 0);
/// RMS norms, with the eps under `key`.
void take_rms_norm(Reader& c, const std::string& key, double fallback);
/// LayerNorm with the eps under `key`.
void take_layer_norm(Reader& c, const std::string& key, double fallback, bool bias);
/// The activation under `key`; gated or plain by the family's code.
void take_activation(Reader& c, const std::string& key, const std::string& fallback, bool gated);
/// attention_bias: on all four projections, or all but the output.
void take_attention_bias(Reader& c, bool fallback, const std::string& where);
/// A number above 0, or nothing where the key is absent or null.
std::optional<double> positive_real(Reader& c, const std::string& key);
/// A cap that null turns off; `fallback` is what a file without the key means, 0 for none.
void take_cap(Reader& c, const std::string& key, const std::string& ours, double fallback);
/// Granite's experts, and its shared one.
void take_granite_experts(Reader& c);
/// clip_qkv.
void take_clip(Reader& c);
/// LayerNorm of queries and keys, for each head the same or with a weight of its own (`kind` as model.qk_norm_kind).
void set_qk_layer_norm(Reader& c, const std::string& kind, bool bias);
/// Groups of experts (DeepSeek V3): n_group, of which topk_group are kept for a token.
void take_router_groups(Reader& c, std::int64_t usual_groups, std::int64_t usual_kept);
/// The dropout rate under `key`, 0 without; the second puts it into `ours`.
double dropout_rate(Reader& c, const std::string& key);
void take_dropout(Reader& c, const std::string& key, const std::string& ours);
/// What most families have: the shape, RMS norms, dropout in attention; the second also has silu, gated.
Shape take_rms_base(Reader& c, double eps, bool tied = false);
Shape take_silu_base(Reader& c, double eps);

struct RopeFamily {
  double theta = 10000;
  double fraction = 1;
  bool squared_mscale = false;  // mscale_all_dim acts on the scores, squared (DeepSeek)
  bool stretched = false;       // the class stretches where the file says nothing, so the file must say something
  bool llama4_beta = false;     // the table has llama_4_scaling_beta, which scales queries by their positions (Ministral 3)
  bool partial = false;         // the class reads partial_rotary_factor (those with a fraction of their own do, too)
};
/// rope_parameters (transformers 5), or rope_theta, rope_scaling and partial_rotary_factor (transformers 4).
void take_rope(Reader& c, const RopeFamily& family);
/// The same with one rotation for sliding layers: nested rope_parameters, or `local` for them without scaling.
void take_two_ropes(Reader& c, double theta, double local);
/// The same where global layers turn a share of every head, at frequencies over the whole of it (Gemma 4).
void take_proportional_ropes(Reader& c);

/// sliding_window; null is none, whatever a file without the key means.
std::int64_t sliding_window_or(Reader& c, std::int64_t usual);
/// layer_types, or what the family makes of its absence: kinds by layer, "global" | "local" | "chunk". `window` is sliding_window; 0
/// where there is none. Writes layer_pattern, window and window_from_layer. Returns the kinds.
std::vector<std::string> take_layer_types(Reader& c, const std::vector<std::string>& fallback, std::int64_t window);
/// mlp_layer_types, or a dense prefix before layers with experts: first_k_dense_replace.
void take_expert_layers(Reader& c, std::int64_t layers, std::int64_t first_dense);
/// Which layers have experts: as moe_first_dense and moe_frequency where these say it, else as moe_pattern.
void set_expert_layers(Reader& c, const std::vector<bool>& experts);
/// Which layers rotate: as nope_every where that says it, else as rope_pattern; pos_embedding = none where none does.
void set_rotating_layers(Reader& c, const std::vector<bool>& rotates);
/// no_rope_layers (1 where a layer does rotate), or without it all but every no_rope_layer_interval-th. An empty list is none where
/// `empty_is_none`.
std::vector<bool> take_rotating_layers(Reader& c, std::int64_t layers, std::int64_t interval, bool empty_is_none);
/// Global layers do not rotate, the others do; where no layer slides, `all_global_rotate` decides.
void rotate_sliding_layers(Reader& c, const std::vector<std::string>& kinds, bool all_global_rotate);
/// Global layers do not rotate, the others see sliding_window (EXAONE 4): layer_types, or every sliding_window_pattern-th is global; all
/// are and rotate where sliding_window is null.
void take_global_without_rotation(Reader& c, std::int64_t layers, std::int64_t usual_window);
/// All layers of one kind.
std::vector<std::string> all_layers(std::int64_t layers, const std::string& kind);
/// Every n-th layer (from 1) global, the others local.
std::vector<std::string> every_nth_global(std::int64_t layers, std::int64_t n);

}  // namespace kf::config::huggingface
