// moe: routers, experts, auxiliary losses.

#include "parity/areas.h"

namespace kf::parity {

void run_moe(const Case& /*test*/, Comparison& /*out*/) { not_built("mixture of experts is"); }

}  // namespace kf::parity
