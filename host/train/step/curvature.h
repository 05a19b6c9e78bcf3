#pragma once
// The diagonal of the loss's Hessian, for optimizers of second order.

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace kf {

class World;

/// The signs that the estimate of update `step` + 1 draws for a weight: of its shape and type.
at::Tensor curvature_signs(const Parameter& parameter, std::uint64_t seed, std::int64_t step);

/// Hutchinson's estimator: the diagonal of H is the mean of s (H s) over random signs s, and one draw of s is taken. (The Sophia paper
/// draws normal numbers; signs have the same mean, less variance, and no rounding in 16 bits.) H s is the gradient of s . gradient, so the
/// losses must come from a forward under `TwiceDifferentiable`. Ranks along tp call alike: each makes its part of the gradient, and what
/// every rank makes of its part of s . gradient adds up to that of all (parallel/graph.h). s depends on (seed, step, name) alone, so losses
/// of micro-batches add up to what one batch of all would give.
class CurvatureEstimate {
 public:
  /// For the weights that train at the moment.
  CurvatureEstimate(const ParameterList& parameters, std::uint64_t seed, std::int64_t step);

  /// Adds a 0-dim share of the step's loss; uses up its graph. Throws Code::config where a piece has no second derivative.
  void add(const at::Tensor& loss);
  /// Divided by `scale`, which multiplied the losses, added up over the data ranks; of a weight that is cut this rank's part. Empty where a
  /// number is not finite on any of them (waits for the device).
  Curvature take(double scale, const World& world);

 private:
  ParameterList parameters_;
  std::vector<at::Tensor> leaves_;
  std::vector<at::Tensor> signs_;  // as the leaves
  std::vector<at::Tensor> sums_;   // fp32; undefined until a gradient came
};

}  // namespace kf
