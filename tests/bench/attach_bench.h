#pragma once
// What it costs that a run can be spoken to (kf-host attach).

namespace kf::bench {

void bench_attach();

}  // namespace kf::bench
