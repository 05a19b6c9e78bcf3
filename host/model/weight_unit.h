#pragma once
// Weights that are whole together while a piece of the model runs: those of a block, or all that are in no block.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/parameter.h"
#include "model/unit_line.h"
#include "parallel/world.h"

namespace kf {

class Module;

/// The weights' way between ranks. Which rows of a weight a rank trains is its placement; a weight that is not cut (dp_shard = 1, frozen,
/// buffers) is the same on all ranks. Experts that are divided along ep move between the ranks that hold the same ones (expert_shards,
/// dp_replicate), all other weights between all data ranks: tokens of the other ep ranks have come to the experts, and so have their
/// gradients. Every call is made by all data ranks, in the same order.
class WeightUnit {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;
  using TakeBucket = std::function<void(ParameterList bucket, bool cut, bool experts)>;

  WeightUnit(ParameterList weights, const World& world, std::shared_ptr<UnitLine> line);
  WeightUnit(const WeightUnit&) = delete;
  WeightUnit& operator=(const WeightUnit&) = delete;

  /// body(x), with whole weights in its forward and in its backward; as soon as that is over its gradients are complete (UnitLine). With
  /// options().prefetch the weights of the block behind are gathered beside the forward, those of the block before beside the backward, and
  /// the last block stays whole from its forward to its backward: two units are whole at a time, or one and another one on its way.
  at::Tensor run(const at::Tensor& x, const Body& body);

  /// Whole until as many `end_use`: for pieces that are not run through `run`.
  void begin_use();
  void end_use();

  /// Behind a backward: stage 3 lets the weights go that it has left whole.
  void end_micro() { release(); }
  /// After the masters moved: what forward reads follows on every rank, once `end_publish` has been called.
  void begin_publish();
  void end_publish();
  /// Between steps nobody reads `value` of weights that are cut (stage 3): it is an empty tensor until the next use.
  void rest();

  /// What trains, in pieces that are reduced together: alike cut or not, over the same ranks, and of bounded size where it has more than
  /// one weight. The same on all ranks.
  void each_bucket(const TakeBucket& take) const;
  UnitLine& line() const { return *line_; }
  /// Whether `value` stays whole between steps.
  bool keeps_values() const { return !divides_weights(); }

 private:
  struct Node;
  bool divides_weights() const { return line_->options().stage == ZeroStage::weights && shards_.size() > 1; }
  void begin_gather();
  void gather();
  void release();
  void begin_values();
  void end_values();
  void backward_begins();
  void backward_ends();

  ParameterList weights_;
  std::shared_ptr<UnitLine> line_;
  Group& shards_;
  Group& expert_shards_;
  std::vector<std::unique_ptr<Gathering>> under_way_;
  std::int64_t uses_ = 0;
  std::int64_t awaited_ = 0;  // forwards whose backward will gather
  std::int64_t open_ = 0;     // forwards whose backward has not ended
  bool whole_ = false;
};

/// All units of a model, in the order of its modules; none on one rank.
std::vector<std::shared_ptr<WeightUnit>> units_of(const Module& model);

/// All weights of a model whole for as long as one exists: evaluation, generation, second derivatives.
class WholeWeights {
 public:
  explicit WholeWeights(const Module& model);
  ~WholeWeights();
  WholeWeights(const WholeWeights&) = delete;
  WholeWeights& operator=(const WholeWeights&) = delete;

 private:
  std::vector<std::shared_ptr<WeightUnit>> units_;
};

/// Where the units of a model stand; null on one rank.
UnitLine* line_of(const Module& model);

/// Makes what forward reads of these weights follow their masters.
void publish(const ParameterList& weights);

}  // namespace kf
