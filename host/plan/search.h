#pragma once
// Layouts of a world, the fastest first.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/loaded.h"
#include "plan/step.h"

namespace kf::plan {

/// Share of an accelerator's memory that tensors may take: the rest is the driver's, the communicators' and lost between blocks. An
/// assumption.
inline constexpr double kUsableMemory = 0.94;

struct Candidate {
  PerAxis degrees;
  std::int64_t batch_size = 0;  // train.batch_size and grad_accum_steps: as many sequences an update as in the job
  std::int64_t micros = 0;
  double memory = 0;  // of the fullest rank
  StepPlan step;

  /// "--distributed.pp=1 ... --distributed.tp=8 --train.batch_size=1 --train.grad_accum_steps=32": every degree, also those of 1, which the
  /// job may have otherwise.
  std::string settings() const;
};

struct Found {
  std::vector<Candidate> best;
  std::int64_t looked_at = 0;  // layouts that the rules allow
  std::int64_t too_large = 0;  // of them those that do not fit
  double least_memory = 0;     // of those
};

/// How far a search is: meshes that were looked at, of how many.
using SearchProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// All degrees whose product is the world, with micro-batches of 1, 2, 4, ... sequences, that the rules allow and that fit into memory; tp
/// stays inside a machine. An update keeps its number of sequences, and everything else of the job stays. The fastest `most`.
Found search(const config::Loaded& loaded, const Weights& weights, const Gpu& gpu, std::int64_t world, std::size_t most,
             const SearchProgress& progress = {});

/// Sequences of an update of the job on `world` ranks, also where its own degrees do not make them up.
std::int64_t update_sequences(const config::Config& config, std::int64_t world);

/// Why the rules refuse this job on `world` ranks; "" where they do not.
std::string refusal(const config::Config& config, const config::Loaded& loaded, std::int64_t world);

}  // namespace kf::plan
