#pragma once
// What the mixture-of-experts layers of a model did over the micro-batches of a step.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/moe/moe.h"
#include "model/staged.h"
#include "model/step_book.h"

namespace kf {

class MoeBook final : public StepBook, public JoinsStages {
 public:
  /// Every such layer below `model`, in order; none for a dense one.
  explicit MoeBook(const Module& model);

  /// Weighted. f_e is the share of the assignments of all ranks that share the loss, so N ranks with B rows each have the balance loss of
  /// one rank with N B rows.
  AuxLosses losses(ForwardResults& results, Group* data) const override;
  void end_micro(const ForwardResults& results) override;
  void end_step(bool updated, double progress, Group* data) override;
  bool follows_updates() const override { return !layers_.empty(); }
  void join_over(Group& pipeline) override { pipeline_ = &pipeline; }

  /// Assignments of the step so far (or of the last one), (layers, E) int64; undefined before the first. Ranks add theirs up in place
  /// before `end_step`.
  const at::Tensor& counts() const { return counts_; }

  /// Means over the micro-batches, weighed by their positions (padding counts), sums over the layers: moe/aux_loss (unweighted; 1 a layer
  /// at perfect balance with softmax routers), moe/router_z_loss. From the counts of all layers: moe/expert_balance = least / most loaded,
  /// moe/max_load = most loaded / mean, moe/load_entropy = mean over the layers of the entropy of the load over ln E (1 when even).
  /// moe/dropped = share of the assignments beyond the capacity, where there is one.
  std::vector<std::pair<std::string, double>> metrics() const override;

  const std::vector<std::shared_ptr<MoeLayer>>& layers() const { return layers_; }

 private:
  void collect(const Module& module);
  void add_ranks(Group& data);
  void add_stages(bool counted);

  std::vector<std::shared_ptr<MoeLayer>> layers_;
  Group* pipeline_ = nullptr;    // whose ranks have run other layers
  std::vector<bool> runs_here_;  // of each layer
  bool step_is_over_ = true;
  double positions_ = 0;
  at::Tensor counts_;  // (layers, E) int64
  at::Tensor sums_;    // (3) fp64 over the micro-batches, times their positions: balance, z, dropped share
};

}  // namespace kf
