#include "optim/optimizer.h"

#include "core/error.h"

namespace kf {

void Optimizer::step_where(double /*lr*/, const at::Tensor& /*ok*/) {
  fail(Code::other, "this optimizer must know on the host whether an update is made");
}

}  // namespace kf
