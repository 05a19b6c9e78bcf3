#pragma once

#include <string>

namespace kf {
struct Registries;
}

namespace kf::bench {

class Goals;

/// Saving and loading against `dd` (and PyTorch's torch.save and distributed checkpoints, where a Python with torch is found: KF_PYTHON,
/// else python3), the stall of a save behind the training, the peak of memory while a model of 2 GB is loaded, the time to open one. Writes
/// a few GB into a folder below `where`, which goes again.
void bench_checkpoint(const Registries& registries, const std::string& where, Goals& goals);

/// The part that needs a process of its own: loads the weights of `checkpoint` and prints by how much the peak of resident memory is above
/// them.
void bench_load_memory(const Registries& registries, const std::string& checkpoint);

}  // namespace kf::bench
