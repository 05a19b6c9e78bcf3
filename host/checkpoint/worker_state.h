#pragma once
// Whose tensors of a checkpoint are whose: workers of DiLoCo keep theirs beside each other.

#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace kf {

/// What of a checkpoint's optimizer state an optimizer reads, by the names in the file.
class WorkerState {
 public:
  /// `stored`: all names. A worker that the file does not know takes the inner state of the first one.
  WorkerState(const Optimizer& optimizer, const std::vector<std::string>& stored);

  /// What the optimizer calls it; "" for what is another worker's.
  std::string own(const std::string& name) const;
  /// Whether the file does not know this worker: its weights are then the outer ones.
  bool is_new() const { return is_new_; }

 private:
  bool apart_ = false, is_new_ = false;
  std::int64_t worker_ = 0;
};

/// Outer weights as those of a worker that is new; its buffers are those of the checkpoint's weights, once these are loaded.
void begin_at_outer(OptimizerState& state, const Optimizer& optimizer);

}  // namespace kf
