#pragma once
// From the number of a micro-batch to its samples: epochs and phases, as pure arithmetic over samplers.

#include <cstdint>
#include <memory>
#include <vector>

#include "config/plan/batch_plan.h"
#include "data/order/sampler.h"

namespace kf {

/// From `start_step` on (counted from 0: update start_step + 1 is the first) these samples.
struct OrderPhase {
  std::int64_t start_step = 0;
  std::shared_ptr<const Sampler> sampler;  // null: the order goes on as before
};

class Order {
 public:
  /// Which phase, epoch and batch of that epoch a micro-batch is.
  struct Position {
    std::int64_t phase = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    std::int64_t sample = 0;  // place of its first sample in the epoch's order
    std::int64_t size = 0;    // samples
  };

  /// `phases` start with one at step 0 that has a sampler; starts strictly increase. A change of sampler starts at position 0 of the new
  /// order of the same epoch. What is left of an epoch and shorter than a batch is dropped.
  /// Throws Code::data when a sampler has fewer samples than a batch.
  Order(const std::vector<OrderPhase>& phases, std::int64_t batch_size, const config::BatchPlan& plan);

  Position position(std::int64_t micro) const;

  /// From `micro` on other samples (null: the order goes on, none is read twice) and another batch size (0: as before). A change at the
  /// same place as the last one takes its place. Throws Code::data for a batch larger than an epoch, and for a place before the last
  /// change.
  void change(std::int64_t micro, std::shared_ptr<const Sampler> sampler, std::int64_t batch_size);
  /// The order as it is from the last change on, begun anew at `micro` and with the epoch after the one that was running there.
  void restart(std::int64_t micro, const Order& before);
  std::vector<std::int64_t> samples(std::int64_t micro) const;
  /// Micro-batches of one pass over the data, at least 1.
  std::int64_t batches_per_epoch() const;
  /// Micro-batches before the data end: of an endless sampler at its end, of others after `epochs` of them (0: never).
  std::int64_t end(std::int64_t epochs) const;
  /// Samples of this rank that were read before `micro`, since its sampler took over.
  std::int64_t samples_before(std::int64_t micro) const;

 private:
  /// Micro-batches in one unbroken order.
  struct Stretch {
    std::int64_t micro = 0;  // the first
    std::int64_t phase = 0;
    std::int64_t epoch = 0;   // in which it begins,
    std::int64_t offset = 0;  // behind so many samples
    std::int64_t batch_size = 1;
    std::shared_ptr<const Sampler> sampler;

    std::int64_t batches() const { return sampler->size() / batch_size; }
  };
  const Stretch& stretch_of(std::int64_t micro) const;
  void check(const Stretch& stretch) const;
  std::int64_t end_of(const Stretch& stretch, std::int64_t epochs) const;

  std::vector<Stretch> stretches_;
};

}  // namespace kf
