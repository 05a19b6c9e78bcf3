#include "train/step/step_sums.h"

#include <ATen/ATen.h>

#include <cmath>

namespace kf {

void add(StepSums& sums, const Minimised& loss, const at::Tensor& zero) {
  if (sums.terms.empty()) {
    sums.terms.reserve(loss.terms.size());
    for (const Term& term : loss.terms) {
      sums.terms.push_back({term.name, zero, term.minimised});
    }
    sums.infinite = zero;
  }
  for (std::size_t i = 0; i < loss.terms.size(); ++i) {
    if (loss.terms[i].share.defined()) {
      const at::Tensor share = loss.terms[i].share.to(at::kFloat);
      sums.terms[i].share = sums.terms[i].share.is_same(zero) ? share : sums.terms[i].share + share;
    }
  }
  if (!loss.total.defined()) {
    return;
  }
  if (!loss.total.is_cpu() || loss.total.scalar_type() != at::kFloat) {
    sums.infinite = sums.infinite + loss.total.detach().isinf();
  } else if (std::isinf(*loss.total.const_data_ptr<float>())) {  // nothing to wait for
    sums.infinite = sums.infinite + 1;
  }
}

}  // namespace kf
