#pragma once
// What a forward pass keeps for its backward, in bytes, from the settings alone. It follows the native layers tensor by tensor; what layers
// written in Lua keep is not known here.

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// How many logits the cross entropy holds at a time on a CPU (256 MiB of fp32): of a larger batch it makes them piece by piece.
inline constexpr std::int64_t kLogitsAtOnce = std::int64_t{1} << 26;

/// A linear layer with a LoRA beside it. The built model knows which: adapter.targets are matched with its names.
struct AdaptedLayer {
  std::string name;  // "layers.0.attention.q_proj"
  double in = 0;     // widths of its two matrices, (rank, in) and (out, rank)
  double out = 0;
  double rank = 0;
};

/// Which share of a micro-batch's tensors a rank has.
struct Spread {
  double tp = 1;                // heads, hidden widths and the vocabulary are divided by it
  bool split_sequence = false;  // and so is the residual stream with its norms; products then keep their gathered input
  double cp = 1;                // positions
  std::int64_t first = 0;       // layers [first, end) of the model; -1: all
  std::int64_t end = -1;
  bool heads = true;  // whether logits are made here
};

/// All in bytes, for one micro-batch.
struct ActivationBytes {
  double kept = 0;     // by all blocks of `spread`, embedding and last norm, from their forward until their backward
  double passing = 0;  // besides, while the largest block runs: what recomputation brings back, and the gradients of its inside
  double logits = 0;   // of the loss, at its worst moment: logits, their softmax and their gradients
};

/// `rows` sequences of `length` tokens. Without `training` nothing is kept: the inside of one block, and logits in pieces of 4,096
/// positions.
ActivationBytes activation_bytes(const Config& config, double rows, double length, bool training = true,
                                 const std::vector<AdaptedLayer>& adapters = {}, const Spread& spread = {});

/// Keys and values that generation keeps: (rows, positions) in all layers, in numbers of `width` bytes.
double cache_bytes(const ModelConfig& model, double rows, double positions, double width);

}  // namespace kf::config
