#include "kernels/kernels.h"

#include "kernels/adamw/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/gate/gate.h"
#include "kernels/grouped_linear/grouped_linear.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rotation/rotation.h"

namespace kf {

const Kernels& fused_kernels() {
  static constexpr Kernels all{fused_rms_norm,       fused_gate,        fused_rotation, fused_attention,
                               fused_grouped_linear, fused_linear_loss, fused_adamw,    fused_cross_entropy};
  return all;
}

const Kernels& plain_kernels() {
  static constexpr Kernels all{plain_rms_norm, plain_gate,        plain_rotation, plain_attention,
                               nullptr,        plain_linear_loss, plain_adamw,    plain_cross_entropy};
  return all;
}

}  // namespace kf
