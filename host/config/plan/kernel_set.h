#pragma once
// Which kernels a job computes with.

namespace kf::config {

struct TrainConfig;

/// The tables of kernels/kernels.h.
enum class KernelSet { fused, plain };

/// By train.compile_model. Nothing else reads that key: parts get the table itself.
KernelSet kernel_set(const TrainConfig& train);

}  // namespace kf::config
