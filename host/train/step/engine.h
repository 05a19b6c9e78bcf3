#pragma once
// How the micro-batches of an update run.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/step/objective.h"

namespace kf {

/// Those of an update, in host memory.
struct MicroBatches {
  const std::vector<Batch>& batches;
  std::int64_t step = 0;  // completed updates before it
  Counts all;
  double scale = 1;  // of the loss
};

/// Sums over the micro-batches; they stay on the device.
struct StepSums {
  std::vector<Term> terms;                 // all defined
  at::Tensor infinite;                     // 0-dim fp32: micro-batches whose loss is infinite
  std::vector<at::Tensor> largest_scores;  // as in ForwardResults, of all micro-batches
};

/// What the caller wants of the micro-batches beside their sums; empty and null for nothing.
struct EngineCallbacks {
  std::function<void()> micro_end;                                     // after the backward of each one
  std::function<void(const std::string&, const at::Tensor&)> observe;  // as ForwardContext::observe
  SourceLosses* source_losses = nullptr;
};

class Engine {
 public:
  virtual ~Engine() = default;
  /// Forward and backward of all of them. Afterwards each weight has the gradient of this rank's sum, or that of all ranks where it has
  /// told the units which backward is the last one (UnitLine::begin_backward), so that gradients travelled behind it.
  virtual StepSums run(const MicroBatches& update, const Objective& objective, const EngineCallbacks& callbacks) = 0;
  /// Forward alone, once more: calls `visit` with the loss of each micro-batch, which has its graph. Nothing joins the step.
  virtual void losses(const MicroBatches& update, const Objective& objective, const std::function<void(const at::Tensor& loss)>& visit) = 0;
};

}  // namespace kf
