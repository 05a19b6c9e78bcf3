#pragma once
// How many bytes a rank of a layout takes, by what they are for.

#include <string>
#include <utility>
#include <vector>

#include "config/plan/weights.h"

namespace kf::plan {

/// Bytes by what they are for, at the moment that needs most.
struct MemoryEstimate {
  std::vector<std::pair<std::string, double>> parts;  // "weights", "gradients", "optimizer (adamw)", "activations", ...; none is 0
  std::string moment;                                 // "backward", "the update", "an evaluation", "generation"
  bool complete = true;                               // false: parts written in Lua (adapters, too) hold what is not known here

  double total() const;
  double of(const std::string& part) const;
  /// The fuller of two moments.
  void take_fuller(std::string other_moment, std::vector<std::pair<std::string, double>> other_parts);
  /// Without parts of less than a byte.
  MemoryEstimate finished() &&;
};

/// A step of training on the fullest rank of a stage. Weights, gradients and the native optimizers' state are exact; activations follow the
/// native layers and their recomputation (config/plan/activation_bytes.h). Gradients grow while backward gives activations back, so the
/// moment is the fullest of: the start of backward, its end, the update, an evaluation.
MemoryEstimate rank_memory(const config::Config& config, const Weights& weights, const Layout& layout, std::int64_t stage);

/// That of the fullest stage.
MemoryEstimate fullest_rank(const config::Config& config, const Weights& weights, const Layout& layout);

/// Some ranks of a world, neighbours by number: those of a machine.
struct RankRange {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

/// Of these ranks together, as if every rank of a stage were the fullest: what a machine needs on which they are.
MemoryEstimate ranks_together(const config::Config& config, const Weights& weights, const Layout& layout, const RankRange& ranks);

/// Micro-batches of a stage whose activations live at the same time, in those of all its layers: the first stage of 1F1B has as many as
/// there are stages (Narayanan et al. 2021, section 2.2).
double in_flight(const config::DistributedConfig& distributed, const Layout& layout, std::int64_t stage, double micros);

}  // namespace kf::plan
