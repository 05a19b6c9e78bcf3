#pragma once
// Adam-mini (Zhang et al. 2024, "Use Fewer Learning Rates To Gain More", algorithm 1): AdamW with one second moment a block.

#include "optim/group_optimizer.h"

namespace kf {

struct AdamMiniOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  std::int64_t head_dim = 1;
};

/// Rows of a weight that share a second moment, by its partition principle: a head of the query and key projections, an output neuron (or a
/// token) of other matrices; 0 stands for the whole of a vector.
std::int64_t rows_of_block(const Parameter& parameter, std::int64_t head_dim);

class AdamMini final : public GroupOptimizer {
 public:
  AdamMini(std::vector<ParamGroup> groups, const AdamMiniOptions& options);

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  AdamMiniOptions options_;
};

}  // namespace kf
