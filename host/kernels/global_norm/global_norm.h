#pragma once
// The L2 norm of many tensors as one vector.

#include <ATen/core/Tensor.h>

#include <vector>

namespace kf {

/// 0-dim fp32 on the tensors' device; 0 on the CPU without any. On a CPU by square_sums_simd.cpp in one loop over all of them, added up in
/// their order: the same bits for any number of threads.
at::Tensor global_norm(const std::vector<at::Tensor>& tensors);

}  // namespace kf
