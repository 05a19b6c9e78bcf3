#pragma once
// Loops on the threads that LibTorch computes with.

#include <cstdint>
#include <type_traits>

namespace kf::simd {

/// How many threads a loop may use here: LibTorch's number, or 1 inside of a loop.
int threads();

/// body(first, end, thread) for even shares of 0 .. count, in order, one a thread: the same shares for the same number of threads. A share
/// has `grain` at least, so that what costs less than waking a thread stays on one. What `body` throws is thrown here.
/// These are LibTorch's own threads (its OpenMP's): others beside them would fight for the cores. (at::parallel_for is a plain loop where a
/// file is compiled without OpenMP, and clang's OpenMP is another library.)
void share(std::int64_t count, std::int64_t grain, void (*body)(void*, std::int64_t first, std::int64_t end, int thread), void* self);

template <class Body>
void share(std::int64_t count, std::int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  share(
      count, grain, [](void* self, std::int64_t first, std::int64_t end, int thread) { (*static_cast<Plain*>(self))(first, end, thread); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace kf::simd
