#pragma once
// What the tensors of a Hugging Face family are called here and how they lie there: one table a family, in weights_*.cpp.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kf::huggingface {

/// How a tensor of the file becomes one of ours.
enum class Layout {
  same,
  transposed,  // stored (in, out), as GPT-2's Conv1D
  rows,        // several of ours one below the other; the table lists them in that order
  rows_of_transposed,
  columns,     // several side by side, in that order
  even,        // gate and up alternate along the last dim: the even ones
  odd,         // the odd ones
  first_half,  // gate lies before up along the last dim
  second_half,
  upper,  // a stack (E, out, in) of gate above up; ours is (E, in, out)
  lower,
  swapped,          // a stack (E, out, in)
  behind_two,       // without the first two rows
  stacked,          // (E F, C), one block of rows an expert: (E, F, C)
  stacked_swapped,  // the same, ours is (E, C, F)
  flat,             // (1, E)
  group_q,          // heads in groups of H / Hkv queries, a key and a value, as rows: the queries
  group_k,
  group_v,
  shard_q,  // four blocks of queries, values and keys each (CodeGen): the queries
  shard_k,
  shard_v,
  half_swapped,  // the halves of every head change places
};

/// One tensor of the file and one of ours. {l} and {e} in a name stand for the numbers of layer and expert.
struct Rule {
  std::string theirs;
  std::string ours;
  Layout layout = Layout::same;
};
using Rules = std::vector<Rule>;

/// The table of a family; throws Code::checkpoint, with the families that there are, for an unknown model_type.
const Rules& rules_of(const std::string& model_type);

/// The table for a model with `shared` experts of the kind shared_expert.N (0: without them): the family's one is all of them, its rows
/// of gate and up one below the other and its columns of down side by side.
Rules rules_for(const std::string& model_type, std::int64_t shared);

/// The parts of tables that many families share.
Rules embedding_rules();                       // embed_tokens, norm, lm_head
Rules norm_rules(bool bias);                   // input_layernorm, post_attention_layernorm before the branches
Rules post_norm_rules();                       // post_attention_layernorm, post_feedforward_layernorm behind them
Rules sandwich_rules();                        // Gemma 2: four norms
Rules attention_rules(bool bias);              // q_proj, k_proj, v_proj, o_proj
Rules qk_norm_rules();                         // q_norm, k_norm
Rules gated_mlp_rules(bool bias);              // gate_proj, up_proj, down_proj
Rules expert_rules(const std::string& block);  // one set of matrices an expert under model.layers.{l}.<block>.experts.{e}
Rules operator+(Rules a, const Rules& b);

}  // namespace kf::huggingface
