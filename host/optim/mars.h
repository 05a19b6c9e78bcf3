#pragma once
// MARS-AdamW (Yuan et al. 2024, "MARS: Unleashing the Power of Variance Reduction", algorithm 2, the approximate form).

#include "config/schema/own_fields.h"
#include "optim/group_optimizer.h"

namespace kf {

struct MarsOptions {
  double beta1 = 0.95;
  double beta2 = 0.99;
  double eps = 1e-8;
  double gamma = 0.025;
};

/// [optimizer.mars]
const config::OwnFields<MarsOptions>& mars_fields();

/// c = g + gamma beta1 / (1 - beta1) (g - g_before), the c of each weight (of each expert in a stack) scaled to norm 1 at most; then AdamW
/// with c for g. g_before of the first update is 0, as in the authors' program.
class Mars final : public GroupOptimizer {
 public:
  Mars(std::vector<ParamGroup> groups, const MarsOptions& options);

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  MarsOptions options_;
};

}  // namespace kf
