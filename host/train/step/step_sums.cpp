#include "train/step/step_sums.h"

#include <ATen/ATen.h>

namespace kf {

void add(StepSums& sums, const Minimised& loss, const at::Tensor& zero) {
  if (sums.terms.empty()) {
    for (const Term& term : loss.terms) {
      sums.terms.push_back({term.name, zero.clone(), term.minimised});
    }
    sums.infinite = zero.clone();
  }
  for (std::size_t i = 0; i < loss.terms.size(); ++i) {
    if (loss.terms[i].share.defined()) {
      sums.terms[i].share += loss.terms[i].share;
    }
  }
  if (loss.total.defined()) {
    sums.infinite += loss.total.detach().isinf();
  }
}

}  // namespace kf
