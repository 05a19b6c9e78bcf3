#pragma once
// The loss of a head whose rows are divided over ranks: nobody ever has whole logits (Shoeybi et al. 2019, section 3).

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/linear_loss/linear_loss.h"
#include "kernels/linear_loss/output_head.h"

namespace kf {

class Group;

/// As fused_linear_loss and plain_linear_loss (kernels/linear_loss): `head.weight` (V / size, C) is this rank's rows, in order of ranks,
/// and hidden (N, C) is the same on all of them. Largest logits, sums of exponentials and the logits of labels are taken over the ranks,
/// and every rank has the same losses. The gradient of `hidden` is this rank's share (TensorRanks::enter).
/// fused: a chunk at a time, with its gradients straight away, as its namesake; otherwise by plain operators, whose graph keeps this rank's
/// part of the logits, and may be differentiated twice.
LinearLoss divided_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                               bool fused, Group& ranks);

}  // namespace kf
