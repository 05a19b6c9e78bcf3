#pragma once
// metrics.histogram_interval: how the numbers of every trained weight and of its gradient are spread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "metrics/histogram.h"
#include "model/parameter.h"
#include "parallel/world.h"

namespace kf {

/// Counts on the device, one pass over each tensor in pieces that fit beside it; nothing waits for the device before `take`.
class WeightHistograms {
 public:
  /// Every `interval` steps; 0: never.
  WeightHistograms(std::int64_t interval, const ParameterList& parameters, const World& world = {});

  /// Whether the step with this number (from 1) has histograms.
  bool due(std::int64_t step) const { return interval_ > 0 && step % interval_ == 0; }

  // In this order within such a step.
  void begin() { gradients_.clear(); }
  /// With all gradients in place, before clipping. Left out: a weight without a gradient.
  void gradients();
  /// "gradients/NAME" and "weights/NAME" (behind the update), over all ranks, for the leader alone: the others get none. All ranks call it.
  Histograms take(std::int64_t step);

 private:
  /// Whether what this rank has of the weight counts: of equal copies one does.
  bool counts(const Parameter& parameter) const;

  std::int64_t interval_;
  ParameterList parameters_;  // that are trained; the same on every rank, whatever it has of them
  World world_;
  std::vector<at::Tensor> gradients_;  // (kBuckets + 4) doubles a parameter, undefined where it has none
};

}  // namespace kf
