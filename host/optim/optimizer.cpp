#include "optim/optimizer.h"

#include "core/error.h"

namespace kf {

void Optimizer::step_with(double /*lr*/, const UpdateTerms& /*terms*/) {
  fail(Code::other, "this optimizer takes no terms: gradients are to be clipped before, and the host must know whether an update is made");
}

}  // namespace kf
