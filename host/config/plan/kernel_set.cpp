#include "config/plan/kernel_set.h"

#include "config/schema/config.h"

namespace kf::config {

KernelSet kernel_set(const TrainConfig& train) { return train.compile_model ? KernelSet::fused : KernelSet::plain; }

}  // namespace kf::config
