#pragma once
// Values that follow from a section: widths, counts, seeds.

#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// What a source of a mixture is called: by its name, else by where it comes from.
const std::string& source_name(const DatasetSource& source);
/// n_kv_heads, or n_heads where unset.
std::int64_t kv_heads(const ModelConfig& model);
/// head_dim, or dim / n_heads where unset.
std::int64_t head_dim(const ModelConfig& model);
/// Those of layer `index` (from 0): global_kv_heads and global_head_dim in global layers, where they are set.
std::int64_t kv_heads(const ModelConfig& model, std::int64_t index);
std::int64_t head_dim(const ModelConfig& model, std::int64_t index);
/// Whether the values of layer `index` (from 0) are its keys: global_k_is_v.
bool keys_are_values(const ModelConfig& model, std::int64_t index);
/// rope_fraction, or rope_fraction_local in local layers, where it is set.
double rope_fraction(const ModelConfig& model, std::int64_t index);
/// Width of what attention gives and the feed-forward layer gets: attn_out_dim, or dim.
std::int64_t branch_dim(const ModelConfig& model);
/// Width of what routed experts read and give: moe_input_dim, or that of their layer.
std::int64_t expert_dim(const ModelConfig& model);
/// What the keys of layer `index` (from 0) are: "global", "local" or "chunk"; layer_pattern repeated, global before window_from_layer.
const std::string& layer_kind(const ModelConfig& model, std::int64_t index);
/// Whether layer `index` (from 0) rotates its queries and keys: rope_pattern repeated, or all but every nope_every-th.
bool has_rope(const ModelConfig& model, std::int64_t index);
/// Whether the feed-forward layers have a gate: mlp_gated; unset gates silu and swiglu_oai.
bool mlp_gated(const ModelConfig& model);
/// ffn_hidden_dim, or trunc(4 * dim * (2/3) * multiplier) rounded up to a multiple of 256.
std::int64_t ffn_hidden_dim(const ModelConfig& model);
/// moe_ffn_dim, or trunc(ffn_hidden_dim * moe_expert_ffn_multiplier) rounded (half to even) to a multiple of 16, at least 16.
std::int64_t expert_ffn_hidden_dim(const ModelConfig& model);
/// moe_shared_ffn_dim, or an expert's width.
std::int64_t shared_ffn_hidden_dim(const ModelConfig& model);
bool is_moe(const ModelConfig& model);
/// Whether the experts' router takes a sigmoid or sqrt(softplus) of its logits, which the sequence balancing loss is for.
bool scores_by_sigmoid(const ModelConfig& model);
/// Whether layer `index` (from 0) has experts: moe_pattern repeated, or without it every moe_frequency-th, starting with number
/// moe_frequency - 1, from moe_first_dense on.
bool is_moe_layer(const ModelConfig& model, std::int64_t index);
/// Whether the projections into attention, or the one out of it, have a bias.
bool has_input_bias(const ModelConfig& model);
bool has_output_bias(const ModelConfig& model);
/// moe_bias_rule without "auto": ema for sigmoid_topk, else none.
std::string moe_bias_rule(const ModelConfig& model);
/// Matrices of the feed-forward layer: 3 for a gated one, else 2.
std::int64_t mlp_matrices(const ModelConfig& model);

/// The mlp part that an activation stands for: silu is swiglu, gelu standard_gelu, relu standard_relu; other names stand for themselves.
std::string mlp_name(const std::string& activation);

/// Whether the weights of checkpoint.init_from are those of the model, to the last one.
bool takes_init_as_it_is(const CheckpointConfig& checkpoint);
/// Whether checkpoints hold weights that never train: checkpoint.save_frozen; unset, not those that an adapter leaves as they are in
/// checkpoint.init_from.
bool saves_frozen(const Config& config);

/// Every parameter of the native layers, by their true shapes: layernorm biases, q/k norms, expert biases and shared experts included.
std::int64_t parameter_count(const ModelConfig& model);
/// The same by what it is spent on: embedding, positions, norms, attention, mlp, router, shared_expert, experts, mtp, head; only what there
/// is.
std::vector<std::pair<std::string, std::int64_t>> parameter_parts(const ModelConfig& model);
/// Training FLOPs of one token: 6 for each weight of a matrix that the token visits (routers left out, as in the reference), and
/// 12 * layers * heads * head_dim * seq_len for attention, with the window or chunk for seq_len where that is shorter.
double flops_per_token(const ModelConfig& model, std::int64_t seq_len);
/// Its parts: layer `index` (from 0); the head with layers of multi-token prediction.
double layer_flops(const ModelConfig& model, std::int64_t index, std::int64_t seq_len);
double head_flops(const ModelConfig& model, std::int64_t seq_len);

/// data_seed, or seed where unset.
std::int64_t data_seed(const TrainConfig& train);

}  // namespace kf::config
