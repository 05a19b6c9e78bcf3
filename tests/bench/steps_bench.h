#pragma once
// Whole training steps and starts of the real program against PyTorch.

#include <string>

namespace kf {

struct Registries;

namespace bench {

class Goals;

/// Steps of kf-host against those of tests/bench/torch_step.py (eager, eager without mmap, compiled), in turns, as rows of a Markdown
/// table. `model`: small, debug or tiny; "" for all. Throws Code::other, behind the table, where losses are not equal.
void bench_steps(const Registries& registries, const std::string& model, Goals& goals);

/// `kf-host --help`, and from the start of a process to the end of its first step, against the same.
void bench_start(const Registries& registries, Goals& goals);

}  // namespace bench
}  // namespace kf
