#pragma once
// What several processes cost and save on this machine.

namespace kf::bench {

/// The same steps of one process and of two, which share the data (dp_replicate) or weights and moments, too (ZeRO-3), with and without
/// communication beside computation: time of a step, what a rank sends in it, and which share of the time of its calls it did not wait for.
/// Each process has one thread, so two of them could be twice as fast at best.
void bench_ranks();

}  // namespace kf::bench
