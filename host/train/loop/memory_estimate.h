#pragma once
// How many bytes a job takes, before it takes them.

#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf {

/// Bytes by what they are for, at the moment that needs most.
struct MemoryEstimate {
  std::vector<std::pair<std::string, double>> parts;  // "weights", "gradients", "optimizer (adamw)", "activations", ...; none is 0
  std::string moment;                                 // "backward", "the update", "an evaluation", "generation"
  bool complete = true;                               // false: parts written in Lua (adapters, too) hold what is not known here

  double total() const;
  double of(const std::string& part) const;
};

/// A step of training. Weights, gradients and the native optimizers' state are exact; activations follow the native layers and their
/// recomputation, and LoRA beside them (config/plan/activation_bytes.h). Gradients grow while backward gives activations back, so the
/// moment is the fullest of: the start of backward, its end, the update, an evaluation.
///   start: activations, logits, the gradients that earlier micro-batches left;
///   end:   all gradients and what one block holds;
///   update: all gradients and what the optimizer needs on its way.
/// `parameters` need no tensors yet: the estimate comes before the first allocation.
MemoryEstimate training_memory(const config::Config& config, const ParameterList& parameters);

/// A model that is read only, in fp32: `rows` texts together, `positions` of each kept by generation (0: an evaluation of `rows` sequences
/// of train.seq_len).
MemoryEstimate inference_memory(const config::Config& config, const ParameterList& parameters, double rows, double positions);

/// Changes of settings and the total with each.
using Savers = std::vector<std::pair<std::string, double>>;

/// What settings would make of it: "train.activation_checkpointing = \"full\"" and the total with it, those that help by 5 % or more, the
/// strongest first.
Savers memory_savers(const config::Config& config, const ParameterList& parameters);

}  // namespace kf
