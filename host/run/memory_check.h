#pragma once
// Whether what a command is about to do fits into memory, said before it allocates.

#include <c10/core/Device.h>

#include <string>
#include <utility>
#include <vector>

#include "config/load/load.h"
#include "core/machine_memory.h"
#include "registry/registries.h"
#include "train/loop/memory_estimate.h"

namespace kf {

/// Free memory of the GPU, or of the machine and this process's limits.
FreeMemory room_on(at::Device device);

/// "about 1.3 GB, 22.1 GB free: weights 270 MB, gradients 270 MB, optimizer (adamw) 540 MB, activations 130 MB"
std::string memory_text(const MemoryEstimate& estimate, const FreeMemory& room);

/// By run.memory_check, throws Code::config or warns where `estimate` does not fit into `room`, with what would help. A refusal takes the
/// uncertain parts (activations, logits) at four fifths: it should be certain. `what` begins the sentence: "the job".
void check_memory(const config::RunConfig& run, const std::string& what, const MemoryEstimate& estimate, const FreeMemory& room,
                  const Savers& savers = {});

/// The same for weights that are about to be loaded from the files of `folder`, and for texts that a loaded model is about to continue:
/// `rows` together, of `positions` each.
void check_loading(const config::Config& config, const ParameterList& parameters, at::Device device, const fs::path& folder);
void check_generation(const config::Config& config, const ParameterList& parameters, at::Device device, double rows, double positions);

/// What `kf-host config check` and --dry-run say of a job's memory, one line each; a job with parts in Lua that are not in `registries`
/// says so instead.
std::vector<std::string> memory_report(const config::Loaded& loaded, const Registries& registries, std::int64_t world);

}  // namespace kf
