#pragma once
// Clipping of updates instead of gradients: by each tensor's RMS, or by the norms of recent updates.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace kf {

/// Divides each update by max(1, RMS / limit) (Shazeer and Stern 2018, "Adafactor", section 6); that of each expert of a stack by its own.
void clip_by_rms(std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights, double limit);

/// Scales all updates of a step together so that their global norm is at most mean + sigma * max(std, 1e-6) of the last `window` norms
/// (population std; norms before clipping). Nothing happens until max(2, window / 2) of them are there. Numbers stay on the device.
class UpdateNormClip {
 public:
  UpdateNormClip(std::int64_t window, double sigma) : window_(window), sigma_(sigma) {}

  /// The norm is over the updates of these ranks, too, each of which has other weights, or other parts of them.
  void add_over(Group& ranks) { over_.push_back(&ranks); }
  /// `weights`: whose updates they are; of several ranks, what another one counts (Parameter::first) is clipped and adds nothing to the
  /// norm.
  void clip(std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights);
  void save(OptimizerState& state) const;
  void load(const OptimizerState& state);

 private:
  at::Tensor norm_over(const std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights) const;

  std::vector<Group*> over_;
  std::int64_t window_;
  double sigma_;
  std::int64_t count_ = 0;  // norms seen
  at::Tensor norms_;        // (window) fp32, a ring
};

}  // namespace kf
