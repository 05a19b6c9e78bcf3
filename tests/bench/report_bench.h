#pragma once
// What a page of runs costs.

namespace kf::bench {

void bench_report();

}  // namespace kf::bench
