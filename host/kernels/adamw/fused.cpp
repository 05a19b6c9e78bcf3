#include "kernels/adamw/adamw.h"

#include <ATen/ATen.h>

#include <optional>

namespace kf {

void fused_adamw(const AdamWLists& lists, const AdamWNumbers& n) {
  if (n.eps_root > 0 || n.nesterov) {
    plain_adamw(lists, n);
    return;
  }
  const std::optional<at::Tensor> leave = lists.ok.defined() ? std::optional(1 - lists.ok) : std::nullopt;  // as gradients that overflow
  at::_fused_adamw_(lists.weights, lists.gradients, lists.m, lists.v, {}, lists.steps, n.lr, n.beta1, n.beta2, n.weight_decay, n.eps,
                    /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, leave);
}

}  // namespace kf
