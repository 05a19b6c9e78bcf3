// torch, GPUs, and the modules that are opened at run time.

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "app/doctor/looks.h"
#include "core/text.h"
#include "core/visible_gpus.h"

namespace kf {
namespace {

using State = Finding::State;

/// Where a library lies that is loaded: its folder; empty where it is not.
fs::path folder_of_loaded(const char* library) {
  void* const loaded = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) {
    return {};
  }
  std::string folder(4096, '\0');
  const bool known = ::dlinfo(loaded, RTLD_DI_ORIGIN, folder.data()) == 0;
  ::dlclose(loaded);
  return known ? fs::path(folder.c_str()) : fs::path();
}

/// "590.48.01" of what the driver tells; "" where it tells nothing.
std::string driver_version() {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string line;
  std::getline(in, line);
  const std::size_t at = line.find("Kernel Module");
  for (const std::string& word : split(at == std::string::npos ? "" : line.substr(at), ' ')) {
    if (!word.empty() && word[0] >= '0' && word[0] <= '9') {
      return word;
    }
  }
  return "";
}

/// NCCL beside torch's folder, as its wheel of PyPI lies, or where the system looks.
bool has_nccl(const fs::path& torch) {
  std::error_code ignored;
  return fs::exists(torch.parent_path().parent_path() / "nvidia" / "nccl" / "lib" / "libnccl.so.2", ignored) ||
         ::dlopen("libnccl.so.2", RTLD_LAZY) != nullptr;
}

}  // namespace

Finding look_at_torch(const Installation& installation) {
  if (const std::string fault = installation.load(); !fault.empty()) {
    return {"torch", State::bad, fault,
            "put its folder (with lib/libtorch_cpu.so in it) into KF_TORCH_DIR, or a link `torch` beside kf-host; in the source tree: make "
            "deps"};
  }
  return {"torch", State::fine, folder_of_loaded("libtorch_cpu.so").string()};
}

/// Behind look_at_torch.
Finding look_at_gpus(const Installation& installation) {
  const std::vector<std::string> gpus = visible_gpus();
  std::error_code ignored;
  if (gpus.empty()) {
    const bool hidden = fs::exists("/dev/nvidiactl", ignored);
    return {"gpu", State::fine, hidden ? "hidden by CUDA_VISIBLE_DEVICES; the processor computes" : "none; the processor computes"};
  }
  const std::string driver = driver_version();
  Finding out{"gpu", State::fine, format("{} ({}){}", gpus.size(), join(gpus, ", "), driver.empty() ? "" : ", driver " + driver)};
  const fs::path torch = folder_of_loaded("libtorch_cpu.so");
  if (!fs::exists(installation.home / "libkf-cuda.so", ignored)) {
    out.state = State::poor;
    out.says += "; this build has no module for GPUs";
    out.remedy = "jobs run on the processor: build again where nvcc of CUDA 13 is there";
  } else if (!fs::exists(torch / "libtorch_cuda.so", ignored)) {
    out.state = State::poor;
    out.says += "; the CUDA libraries of torch are missing";
    out.remedy = "jobs run on the processor: run `make deps` on a machine where nvidia-smi works";
  } else if (gpus.size() > 1 && !has_nccl(torch)) {
    out.state = State::poor;
    out.says += "; no NCCL";
    out.remedy = "several GPUs cannot train together without libnccl.so.2: pip's nvidia-nccl-cu13 has it";
  } else if (gpus.size() > 1) {
    out.says += ", NCCL";
  }
  return out;
}

Finding look_at_tables(const Installation& installation) {
  std::error_code ignored;
  const char* const chosen = std::getenv("KF_ARROW_DIR");
  const fs::path beside = chosen != nullptr && *chosen != '\0' ? fs::path(chosen) : installation.home / "pyarrow";
  const fs::path module = installation.home / "libkf-arrow.so";
  std::string fault;
  if (!fs::exists(module, ignored)) {
    fault = format("{} is missing", module);
  } else if (!fs::is_directory(beside, ignored) && ::dlopen(module.c_str(), RTLD_LAZY) == nullptr) {  // by where it was built
    fault = ::dlerror();
  }
  return fault.empty() ? Finding{"parquet", State::fine, "Parquet and Arrow files can be read"}
                       : Finding{"parquet", State::poor, "Parquet and Arrow files cannot be read: " + fault,
                                 "in the source tree: make deps, and build again; other formats need nothing"};
}

}  // namespace kf
