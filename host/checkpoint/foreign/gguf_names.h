#pragma once
// What llama.cpp calls the weights of Llama-like models, and how they lie there.

#include <string_view>

namespace kf::gguf {

enum class Rows {
  plain,
  queries,  // of heads whose halves rotate together; in files of `llama`, neighbours do
  keys
};

struct Name {
  std::string_view theirs, ours;  // of a block, without its number: "attn_q", "attention.q_proj"
  Rows rows = Rows::plain;
  bool norm = false;  // there, what it multiplies by; ours may be 1 below that (model.norm_unit_offset)
};

/// Outside of blocks, in full.
inline constexpr Name kOutside[] = {{"token_embd.weight", "token_embedding.embedding.weight"},
                                    {"output_norm.weight", "norm.weight", Rows::plain, true},
                                    {"output.weight", "output_head.proj.weight"}};
/// Of a block ("blk.N.", "layers.N."), with a weight (".weight") and those that are no norms maybe a bias.
inline constexpr Name kOfBlock[] = {{"attn_q", "attention.q_proj", Rows::queries},
                                    {"attn_k", "attention.k_proj", Rows::keys},
                                    {"attn_v", "attention.v_proj"},
                                    {"attn_output", "attention.o_proj"},
                                    {"ffn_gate", "mlp.gate_proj"},
                                    {"ffn_up", "mlp.up_proj"},
                                    {"ffn_down", "mlp.down_proj"},
                                    {"attn_norm", "attention_norm", Rows::plain, true},
                                    {"ffn_norm", "mlp_norm", Rows::plain, true},
                                    {"attn_q_norm", "attention.q_norm", Rows::plain, true},
                                    {"attn_k_norm", "attention.k_norm", Rows::plain, true}};
/// Divisors of rotary frequencies, which are settings (config/huggingface/gguf.h).
inline constexpr std::string_view kDivisors = "rope_freqs.weight";

}  // namespace kf::gguf
