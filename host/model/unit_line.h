#pragma once
// The units of a model in a row, and which of their calls are under way.

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/unit_parts.h"
#include "parallel/world.h"

namespace kf {

class WeightUnit;

/// What dp_shard divides (Rajbhandari et al. 2020, "ZeRO", section 5): 1 masters and moments, 2 gradients, too, 3 the weights that forward
/// reads, too.
enum class ZeroStage : std::int8_t { moments = 1, gradients = 2, weights = 3 };

/// How weights and gradients travel: `[distributed]`.
struct UnitOptions {
  UnitOptions(ZeroStage zero) : stage(zero) {}  // NOLINT(google-explicit-constructor): a stage and the defaults

  ZeroStage stage;
  bool prefetch = true;                     // calls run beside what computes
  at::ScalarType reduce_type = at::kFloat;  // of gradients on their way
  bool each_micro = false;                  // stages 2 and 3: gradients go to their parts behind every micro-batch
};

/// Gradients of a unit are reduced as soon as its backward is over, behind the backward of those before it, always in the same order: the
/// last block first, what is in no block last. A unit that a backward leaves out waits for its end, so the order of calls does not hang on
/// the graph. Weights are gathered over a communicator of their own, one unit ahead (WeightUnit::run).
///
/// On the way are at most the gradients of one bucket over the shards and those of one over the replicas.
class UnitLine {
 public:
  /// Of some ranks that train together; all of them make it at the same time.
  UnitLine(const World& world, const UnitOptions& options);
  UnitLine(const UnitLine&) = delete;
  UnitLine& operator=(const UnitLine&) = delete;

  const UnitOptions& options() const { return options_; }
  /// In the order of forward; behind the blocks what is in none.
  void append(WeightUnit& unit);
  /// The block behind and the one before this one; null where there is none.
  WeightUnit* next(const WeightUnit& unit) const;
  WeightUnit* previous(const WeightUnit& unit) const;
  /// Whether there is no block behind it.
  bool ends_with(const WeightUnit& unit) const { return next(unit) == nullptr; }

  /// Before the backward of a micro-batch; `last`: of an update. Gradients add up on each rank until the last one; or those of weights that
  /// are cut go to their parts behind each one (each_micro).
  void begin_backward(bool last);
  /// Behind it, with what is left; no call is under way any more.
  void end_backward();
  /// The end of an update's backwards: what they have left is reduced, all of it where none was said to be the last one.
  void reduce();
  /// The gradients of a unit are complete.
  void complete(const WeightUnit& unit);

 private:
  std::size_t place(const WeightUnit& unit) const;
  void advance();
  void begin(ParameterList bucket, bool cut, bool experts);
  void pass_on();
  void settle();

  UnitOptions options_;
  Group& replicas_;
  std::unique_ptr<Group> shards_, expert_shards_;  // of reductions alone: gathers run beside them
  std::vector<WeightUnit*> units_;
  std::vector<bool> complete_;  // by unit, in this backward
  std::size_t reduced_ = 0;     // units of this backward: the next one is that many from the end, what is in no block is the last one
  bool reduces_ = false, last_ = false, left_ = true;
  std::unique_ptr<Reduction> over_shards_, over_replicas_;
};

}  // namespace kf
