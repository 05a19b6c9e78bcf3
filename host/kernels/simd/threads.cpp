#include "kernels/simd/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "kernels/simd/pinned.h"

// Of libgomp, whose interface for compilers is stable.
extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
extern "C" int omp_get_thread_num();
extern "C" int omp_get_num_threads();
extern "C" int omp_in_parallel();

namespace kf::simd {
namespace {

struct Loop {
  std::int64_t count = 0;
  int shares = 1;
  void (*body)(void*, std::int64_t, std::int64_t, int) = nullptr;
  void* self = nullptr;
  std::mutex mutex;
  std::exception_ptr failure;
};

void run_share(void* data) {
  auto& loop = *static_cast<Loop*>(data);
  const int thread = omp_get_thread_num();
  if (thread > 0) {
    take_core(thread);
  }
  // OpenMP may give fewer threads than it was asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC, OMP_MAX_ACTIVE_LEVELS).
  const int shares = std::min(loop.shares, omp_get_num_threads());
  if (thread >= shares) {
    return;
  }
  const std::int64_t first = loop.count * thread / shares;
  const std::int64_t end = loop.count * (thread + 1) / shares;
  try {
    if (first < end) {
      loop.body(loop.self, first, end, thread);
    }
  } catch (...) {
    const std::lock_guard lock(loop.mutex);
    loop.failure = std::current_exception();
  }
}

}  // namespace

int threads() { return omp_in_parallel() != 0 ? 1 : at::get_num_threads(); }

void share(std::int64_t count, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t, int), void* self) {
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const int shares = static_cast<int>(std::min<std::int64_t>(most, threads()));
  if (count <= 0) {
    return;
  }
  if (shares == 1) {
    body(self, 0, count, 0);
    return;
  }
  Loop loop{count, shares, body, self, {}, {}};
  // Always all threads, also those without a share: libgomp ends what a smaller team leaves over and starts new threads for the next larger
  // one, which costs many times what waking them does. LibTorch's own loops do the same.
  GOMP_parallel(run_share, &loop, static_cast<unsigned>(threads()), 0);
  if (loop.failure) {
    std::rethrow_exception(loop.failure);
  }
}

}  // namespace kf::simd
