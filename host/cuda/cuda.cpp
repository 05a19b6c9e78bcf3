// Loading this module registers torch's CUDA kernels (static initialisers of libtorch_cuda). It must happen before anything asks for CUDA.

#include "cuda/cuda.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

/// KF_CUDA_SYNC_WARN=1 makes torch print a warning for every operation that waits for the device: tests/gpu/run counts them.
void warn_on_sync() {
  if (std::getenv("KF_CUDA_SYNC_WARN") != nullptr) {
    c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int kf_cuda_open(KfCudaDevice report, void* user, char* error, unsigned long size) {
  try {
    const c10::DeviceIndex count = c10::cuda::device_count_ensure_non_zero();
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    warn_on_sync();
    for (c10::DeviceIndex i = 0; i < count; ++i) {
      cudaDeviceProp device{};
      C10_CUDA_CHECK(cudaGetDeviceProperties(&device, i));
      report(user, i, device.name, device.totalGlobalMem, device.major, device.minor);
    }
    return count;
  } catch (const c10::Error& e) {
    std::snprintf(error, size, "%s", e.what_without_backtrace());
    return -1;
  } catch (const std::exception& e) {
    std::snprintf(error, size, "%s", e.what());
    return -1;
  }
}
