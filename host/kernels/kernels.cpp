#include "kernels/kernels.h"

#include "kernels/adamw/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/gate/gate.h"
#include "kernels/gated_experts/gated_experts.h"
#include "kernels/gated_mlp/gated_mlp.h"
#include "kernels/grouped_linear/grouped_linear.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/lion/lion.h"
#include "kernels/muon/muon.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rotation/rotation.h"
#include "kernels/self_attention/self_attention.h"

namespace kf {

const Kernels& fused_kernels() {
  static constexpr Kernels all{.rms_norm = fused_rms_norm,
                               .add_rms_norm = fused_add_rms_norm,
                               .layer_norm = fused_layer_norm,
                               .add_layer_norm = fused_add_layer_norm,
                               .gate = fused_gate,
                               .gated_mlp = fused_gated_mlp,
                               .rotation = fused_rotation,
                               .attention = fused_attention,
                               .self_attention = fused_self_attention,
                               .grouped_linear = fused_grouped_linear,
                               .gated_experts = fused_gated_experts,
                               .linear_loss = fused_linear_loss,
                               .adamw = fused_adamw,
                               .lion = fused_lion,
                               .muon_momentum = fused_muon_momentum,
                               .muon_move = fused_muon_move,
                               .cross_entropy = fused_cross_entropy};
  return all;
}

const Kernels& plain_kernels() {
  static constexpr Kernels all{.rms_norm = plain_rms_norm,
                               .add_rms_norm = plain_add_rms_norm,
                               .layer_norm = plain_layer_norm,
                               .add_layer_norm = plain_add_layer_norm,
                               .gate = plain_gate,
                               .gated_mlp = nullptr,
                               .rotation = plain_rotation,
                               .attention = plain_attention,
                               .self_attention = nullptr,
                               .grouped_linear = nullptr,
                               .gated_experts = nullptr,
                               .linear_loss = plain_linear_loss,
                               .adamw = plain_adamw,
                               .lion = plain_lion,
                               .muon_momentum = plain_muon_momentum,
                               .muon_move = plain_muon_move,
                               .cross_entropy = plain_cross_entropy};
  return all;
}

}  // namespace kf
