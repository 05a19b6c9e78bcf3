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
#include "parallel/world.h"

namespace kf {

class Module;

/// What dp_shard divides (Rajbhandari et al. 2020, "ZeRO", section 5): 1 masters and moments, 2 gradients, too, 3 the weights that forward
/// reads, too.
enum class ZeroStage : std::int8_t { moments = 1, gradients = 2, weights = 3 };

/// The weights' way between ranks. Which rows of a weight a rank trains is its placement; a weight that is not cut (dp_shard = 1, frozen,
/// buffers) is the same on all ranks. Experts that are divided along ep move between the ranks that hold the same ones (expert_shards,
/// dp_replicate), all other weights between all data ranks: tokens of the other ep ranks have come to the experts, and so have their
/// gradients. Every call is made by all data ranks, in the same order.
class WeightUnit {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  WeightUnit(ParameterList weights, const World& world, ZeroStage stage);
  WeightUnit(const WeightUnit&) = delete;
  WeightUnit& operator=(const WeightUnit&) = delete;

  /// body(x), with whole weights in its forward and in its backward; as soon as that is over the gradients go to their parts (stages 2, 3).
  at::Tensor run(const at::Tensor& x, const Body& body);

  /// Whole until as many `end_use`: for pieces that are not run through `run`.
  void begin_use();
  void end_use();

  /// Adds the gradients of all ranks: each rank has those of its parts then, in the type of gradients, and the whole ones are gone.
  void reduce();
  /// After a backward, stages 2 and 3: what `run` has left.
  void end_micro();
  /// After the masters moved: what forward reads follows on every rank.
  void publish();
  /// Whether `value` stays whole between steps.
  bool keeps_values() const { return stage_ != ZeroStage::weights; }
  /// Whether gradients go to their parts behind every micro-batch, not only behind the last one.
  bool reduces_itself() const { return stage_ != ZeroStage::moments; }
  /// Between steps nobody reads `value` of weights that are cut (stage 3): it is an empty tensor until the next use.
  void rest();

 private:
  struct Node;
  bool shards() const { return shards_.size() > 1; }
  Group& shards_of(const Parameter& weight) const;
  void sum_over_holders(const Parameter& weight, const at::Tensor& t) const;
  void gather();
  void release();
  void gather_values(const ParameterList& weights) const;
  void reduce_cut(const ParameterList& weights) const;
  void reduce_whole(const ParameterList& weights) const;
  ParameterList with_gradient() const;

  ParameterList weights_;
  Group& data_;
  Group& shards_;
  Group& expert_shards_;
  Group& replicas_;
  ZeroStage stage_;
  std::int64_t uses_ = 0;
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

/// Makes what forward reads of these weights follow their masters.
void publish(const ParameterList& weights);

}  // namespace kf
