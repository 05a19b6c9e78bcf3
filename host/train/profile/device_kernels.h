#pragma once
// What a GPU did, as Kineto sees it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kf {

/// A kernel, or a copy by the device.
struct DeviceKernel {
  std::string name;
  std::int64_t begin = 0;  // ns since 1970
  std::int64_t end = 0;
  std::int64_t stream = 0;
};

/// Records the kernels that this process's GPU runs while one exists. While it does, Kineto has c10's PROFILER_STATE of this thread: what
/// is installed there later must go before `take`.
class DeviceKernels {
 public:
  DeviceKernels();
  ~DeviceKernels();
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;
  /// All of them; records no more.
  std::vector<DeviceKernel> take();

 private:
  bool on_ = true;
};

}  // namespace kf
