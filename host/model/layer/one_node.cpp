#include "model/layer/one_node.h"

#include "kernels/product/put_off.h"
#include "model/observe.h"
#include "model/recompute/kept_results.h"
#include "model/recompute/twice_differentiable.h"

namespace kf {

bool may_be_one_node() {
  return observation_count == 0 && !KeptResults::active() && !PutOffProducts::active() && !TwiceDifferentiable::wanted();
}

}  // namespace kf
