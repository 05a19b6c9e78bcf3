#include "train/profile/device_kernels.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>

namespace kf {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

}  // namespace

DeviceKernels::DeviceKernels() {
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CUDA};  // what the host does, ranges say
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
}

DeviceKernels::~DeviceKernels() {
  if (on_) {
    profiler::disableProfiler();
  }
}

std::vector<DeviceKernel> DeviceKernels::take() {
  on_ = false;
  std::vector<DeviceKernel> out;
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.deviceType() == c10::DeviceType::CUDA) {
      out.push_back(
          {event.name(), static_cast<std::int64_t>(event.startNs()), static_cast<std::int64_t>(event.endNs()), event.deviceResourceId()});
    }
  }
  return out;
}

}  // namespace kf
