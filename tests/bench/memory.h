#pragma once
// What tensors on the CPU hold, counted where they are allocated.

#include <cstdint>

namespace kf::bench {

/// From now on every tensor of the CPU is counted. Scratch space inside of libraries (oneDNN, MKL) is not.
void count_memory();

/// The most that tensors held since the last `reset_peak`, beyond what they held then; bytes.
std::int64_t peak_memory();
void reset_peak();

}  // namespace kf::bench
