#pragma once

namespace kf::bench {

/// Trials of sweeps of tiny runs, a second: each a process of its own, and one after another in the process of the sweep.
void bench_sweep();

}  // namespace kf::bench
