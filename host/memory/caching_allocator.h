#pragma once
// The memory of freed tensors, kept for the next ones.

#include <cstdint>

namespace kf {

/// What our allocator has taken from the system, in bytes.
struct TensorMemoryHeld {
  std::int64_t used = 0;    // by tensors
  std::int64_t cached = 0;  // kept for the next ones
};

/// From now on, memory of tensors on the CPU comes from what earlier ones have left (`on`), or from torch's own allocator again; tensors
/// that are there stay. A step asks for what the step before has freed: from the system, large pieces of it would come as fresh pages that
/// are filled with zeros, every step. What is kept and used together stays within five quarters of the most that was used at once lately,
/// and 32 MB. Returns whether it is as wanted: under the address sanitizer, which finds overruns of pieces of its own alone, it is never
/// on.
bool cache_tensor_memory(bool on);

TensorMemoryHeld tensor_memory_held();

/// Gives what no tensor uses back to the system.
void release_cached_memory();

}  // namespace kf
