#include "optim/rmsprop.h"

#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"

namespace kf {

const config::OwnFields<RmsPropOptions>& rmsprop_fields() {
  using config::field;
  static const config::OwnFields<RmsPropOptions> fields{
      field("momentum", &RmsPropOptions::momentum, config::from_below(0, 1), "Share of the step before that is kept."),
  };
  return fields;
}

RmsProp::RmsProp(std::vector<ParamGroup> groups, const RmsPropOptions& options)
    : GroupOptimizer(std::move(groups), {{"exp_avg_sq"}, {"momentum"}}), options_(options) {}

void RmsProp::update(TensorLists& lists, double lr, double weight_decay) {
  std::vector<at::Tensor>& v = lists.slots[0];
  std::vector<at::Tensor>& buffer = lists.slots[1];
  at::_foreach_mul_(v, options_.beta2);
  at::_foreach_addcmul_(v, lists.gradients, lists.gradients, 1 - options_.beta2);
  std::vector<at::Tensor> denominator = at::_foreach_sqrt(v);
  at::_foreach_add_(denominator, options_.eps);
  at::_foreach_mul_(buffer, options_.momentum);
  at::_foreach_add_(buffer, at::_foreach_div(lists.gradients, denominator), 1);
  decay_weights(lists.masters, lr, weight_decay);
  at::_foreach_add_(lists.masters, buffer, -lr);
}

}  // namespace kf
