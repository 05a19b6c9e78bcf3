#pragma once
// Gradient clipping by the global L2 norm (Pascanu et al. 2013).

#include <ATen/core/Tensor.h>

#include "model/parameter.h"

namespace kf {

class World;

/// The L2 norm over all gradients, 0-dim fp32 on their device (0 without any). Of the weights of all ranks of
/// `world`, which all call it then and get the same; null: of one rank.
at::Tensor gradient_norm(const ParameterList& parameters, const World* world = nullptr);

/// min(1, max_norm / (norm + 1e-6)), 0-dim fp32; undefined where max_norm is infinite.
at::Tensor clip_factor(const at::Tensor& norm, double max_norm);
/// Multiplies every gradient by `factor`, unless it is undefined.
void scale_gradients(const ParameterList& parameters, const at::Tensor& factor);
/// Both.
void clip_gradients(const ParameterList& parameters, const at::Tensor& norm, double max_norm);

}  // namespace kf
