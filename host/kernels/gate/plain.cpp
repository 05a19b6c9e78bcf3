#include "kernels/gate/gate.h"

#include <ATen/ATen.h>

namespace kf {

at::Tensor activated(GateKind kind, const at::Tensor& x) {
  switch (kind) {
    case GateKind::silu: return at::silu(x);
    case GateKind::gelu: return at::gelu(x);
    case GateKind::gelu_tanh: return at::gelu(x, "tanh");
    case GateKind::relu: return at::relu(x);
    case GateKind::relu2: return at::relu(x).square();
    case GateKind::quick_gelu: return x * at::sigmoid(x * 1.702);
    case GateKind::tanh: return at::tanh(x);
  }
  return x;
}

at::Tensor plain_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up) { return activated(kind, gate) * up; }

}  // namespace kf
