#pragma once
// Threads of loops that stay on their cores.

#include <cstdint>
#include <vector>

namespace kf::simd {

/// While it lives, this thread and what it starts stay on `cores` (the logical processors of each), and thread i > 0 of a loop
/// (kernels/simd/threads.h) on core i, counted round. The first thread of a loop, which is the caller's, takes the core that is left: bound
/// to one it would bind with it whatever it starts, threads that load and save, and programs. One at a time in a process.
class PinnedThreads {
 public:
  /// `before`: the processors that all may run on again at the end (core/cores.h, allowed_processors). Throws std::system_error where the
  /// system refuses.
  PinnedThreads(const std::vector<std::vector<int>>& cores, std::vector<int> before);
  ~PinnedThreads();
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;

 private:
  std::vector<int> before_;
};

/// For thread i > 0 of a loop: goes to its core where it is not there yet. LibTorch's runtime ends threads and starts others in their
/// places.
void take_core(int thread);

}  // namespace kf::simd
