#pragma once
// What an update of Muon (Jordan et al. 2024) does number by number, before and behind the orthogonalisation.

#include <ATen/core/Tensor.h>

namespace kf {

struct MuonMomentum {
  at::Tensor gradient;     // fp32 or stored in 16 bits
  at::Tensor momentum;     // fp32, changed in place
  at::Tensor factor = {};  // 0-dim fp32: the gradient counts times this; undefined for 1
  double beta = 0.95;
  bool nesterov = true;
};

/// momentum = beta momentum + g. Returns what is to be orthogonalised, in fp32: g + beta momentum in a tensor of its own, or without
/// `nesterov` the momentum itself. On a CPU one pass, elsewhere the plain twin. Without autograd.
at::Tensor fused_muon_momentum(const MuonMomentum& in);
/// The same, by a pass an operation.
at::Tensor plain_muon_momentum(const MuonMomentum& in);

struct MuonMove {
  at::Tensor weight;      // fp32 or stored in 16 bits, changed in place
  at::Tensor direction;   // fp32, of its shape and any strides
  at::Tensor value = {};  // what is to follow the weight in another type; undefined for none
  double keep = 1;        // 1 - lr weight_decay
  double rate = 0;        // lr times the matrix's scale
};

/// weight = keep weight - rate direction; `value` follows. On a CPU one pass, elsewhere the plain twin. Without autograd.
void fused_muon_move(const MuonMove& in);
/// The same, by a pass an operation.
void plain_muon_move(const MuonMove& in);

}  // namespace kf
