#include <ATen/ATen.h>

#include "kernels/muon/muon.h"

namespace kf {

at::Tensor plain_muon_momentum(const MuonMomentum& in) {
  const at::Tensor wide = in.gradient.to(at::kFloat);
  const at::Tensor gradient = in.factor.defined() ? wide * in.factor : wide;
  in.momentum.mul_(in.beta).add_(gradient);
  return in.nesterov ? gradient + in.beta * in.momentum : in.momentum;
}

void plain_muon_move(const MuonMove& in) {
  const at::Tensor wide = in.weight.to(at::kFloat);  // the same tensor, but for 16-bit weights
  wide.mul_(in.keep).add_(in.direction, -in.rate);
  if (!wide.is_same(in.weight)) {
    in.weight.copy_(wide);
  }
  if (in.value.defined()) {
    in.value.copy_(wide);
  }
}

}  // namespace kf
