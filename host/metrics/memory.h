#pragma once
// Memory that the process holds.

#include <c10/core/Device.h>

#include <cstdint>

namespace kf {

/// Resident set of this process in bytes; 0 where the system does not tell.
std::int64_t resident_bytes();

/// What a run needs of `device`: the largest amount that torch's allocator ever held on a GPU, the resident set for a CPU.
std::int64_t memory_bytes(at::Device device);

}  // namespace kf
