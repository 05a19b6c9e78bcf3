#include "run/device.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/fs.h"
#include "core/log.h"
#include "cuda/cuda.h"

namespace kf {
namespace {

/// The folder of the shared library that `address` lies in.
fs::path folder_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? fs::absolute(info.dli_fname).parent_path() : fs::path();
}

/// The driver's device nodes (the second is WSL's), unless the user hides every GPU.
bool gpu_present() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && (std::string_view(visible).empty() || std::string_view(visible) == "-1")) {
    return false;
  }
  std::error_code ignored;
  return fs::exists("/dev/nvidiactl", ignored) || fs::exists("/dev/dxg", ignored);
}

/// "" or why the library cannot be loaded. It stays loaded until the process ends: torch registers kernels that nothing takes back.
std::string load(const fs::path& library) { return ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr ? "" : ::dlerror(); }

struct Opened {
  ComputeDevice device;
  std::string reason;  // why there is none
};

Opened open_cuda() {
  const fs::path module = folder_of(reinterpret_cast<const void*>(&open_device)) / "libkf-cuda.so";
  if (!fs::exists(module)) {
    return {{}, format("this build has no GPU module ({} is missing); build it with nvcc of CUDA 13", module)};
  }
  // From the folder of the libtorch_cpu that runs already, wherever KF_TORCH_DIR put it.
  const fs::path torch = folder_of(reinterpret_cast<const void*>(&at::get_num_threads));
  for (const fs::path& library : {torch / "libtorch_cuda.so", module}) {
    if (const std::string reason = load(library); !reason.empty()) {
      return {{}, format("{}; the CUDA libraries of torch are missing: run `make deps` on a machine where nvidia-smi works", reason)};
    }
  }
  void* const library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto open = reinterpret_cast<KfCudaOpen>(::dlsym(library, "kf_cuda_open"));
  if (open == nullptr) {
    return {{}, format("{} belongs to another version: {}", module, ::dlerror())};
  }
  Opened opened;
  std::array<char, 512> error{};
  const auto report = [](void* user, int index, const char* name, unsigned long long bytes, int major, int /*minor*/) {
    if (index == 0) {
      *static_cast<ComputeDevice*>(user) = {at::Device(at::kCUDA, 0), name, major, bytes};
    }
  };
  const int count = open(report, &opened.device, error.data(), error.size());
  if (count <= 0) {
    opened.device = {};
    opened.reason = count == 0 ? "the driver shows no GPU" : error.data();
  }
  return opened;
}

}  // namespace

ComputeDevice open_device(const std::string& wanted) {
  if (wanted == "cpu" || (wanted == "auto" && !gpu_present())) {
    return {};
  }
  Opened opened = open_cuda();
  if (opened.reason.empty()) {
    return std::move(opened.device);
  }
  KF_CHECK(wanted == "auto", Code::config, "run.device = \"cuda\" cannot be had: {}; or use run.device = \"cpu\"", opened.reason);
  log::warn("a GPU is present but cannot be used, so the CPU computes: {}", opened.reason);
  return {};
}

}  // namespace kf
