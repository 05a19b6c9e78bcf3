#pragma once
// What reading the data costs: waiting, long sequences, orders, packing, memory.

namespace kf::bench {

void bench_data();

}  // namespace kf::bench
