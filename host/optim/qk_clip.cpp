#include "optim/qk_clip.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace kf {

void clip_queries(Model& model, const std::vector<at::Tensor>& largest_scores, double tau) {
  const at::NoGradGuard no_grad;
  for (std::size_t layer = 0; layer < largest_scores.size(); ++layer) {
    if (const at::Tensor& largest = largest_scores[layer]; largest.defined()) {
      // Scores at or below 0 need no clipping: their quotient would not be positive.
      const at::Tensor factors = at::where(largest > tau, tau / (largest + 1e-6), at::ones_like(largest));
      model.scale_queries(static_cast<std::int64_t>(layer), factors);
    }
  }
}

}  // namespace kf
