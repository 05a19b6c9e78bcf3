#pragma once
// From the number of a micro-batch to its samples: epochs and phases, as pure arithmetic over samplers.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "config/batch_plan.h"
#include "data/sampler.h"

namespace kf {

/// From `start_step` on (counted from 0: update start_step + 1 is the first) these samples and this factor of the learning rate.
struct OrderPhase {
  std::int64_t start_step = 0;
  double lr_scale = 1.0;
  std::shared_ptr<const Sampler> sampler;  // null: the order goes on as before
};

class Order {
 public:
  /// Which phase, epoch and batch of that epoch a micro-batch is.
  struct Position {
    std::int64_t phase = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
  };

  /// `phases` start with one at step 0 that has a sampler; starts strictly increase. A change of sampler starts at position 0 of the new
  /// order of the same epoch. What is left of an epoch and shorter than a batch is dropped.
  /// Throws Code::data when a sampler has fewer samples than a batch.
  Order(std::vector<OrderPhase> phases, std::int64_t batch_size, config::BatchPlan plan);

  Position position(std::int64_t micro) const;
  /// Valid until the next call.
  std::span<const std::int64_t> samples(std::int64_t micro);
  std::int64_t batches_per_epoch() const { return batches_of(0); }
  double lr_scale(std::int64_t step) const;

 private:
  std::int64_t batches_of(std::size_t phase) const;

  std::vector<OrderPhase> phases_;  // a null sampler is replaced by that of the phase before
  std::vector<bool> restarts_;      // whether the phase brought a sampler of its own
  std::int64_t batch_size_;
  config::BatchPlan plan_;
  // The permutation in use: shuffling again for each micro-batch would cost more than the step.
  std::vector<std::int64_t> cached_;
  std::int64_t cached_phase_ = -1;
  std::int64_t cached_epoch_ = -1;
};

}  // namespace kf
