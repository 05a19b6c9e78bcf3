#pragma once

namespace kf {

/// What half of a gated layer passes through: x sigmoid(x), x Phi(x) exactly and as tanh has it, max(x, 0) and its square, x
/// sigmoid(1.702 x), tanh(x).
enum class GateKind : int { silu, gelu, gelu_tanh, relu, relu2, quick_gelu, tanh };

}  // namespace kf
