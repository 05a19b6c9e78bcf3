#include "kernels/simd/pinned.h"

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "kernels/simd/threads.h"

namespace kf::simd {
namespace {

std::mutex mutex;
std::vector<std::vector<int>> places;    // by thread; empty: everywhere
std::vector<int> everywhere;             // where threads go back to
std::atomic<std::uint64_t> changes = 0;  // of both

bool stay_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) {
    CPU_SET(processor, &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

void change(const std::vector<std::vector<int>>& to, const std::vector<int>& otherwise) {
  {
    const std::lock_guard lock(mutex);
    places = to;
    everywhere = otherwise;
    ++changes;
  }
  share(threads(), 1, [](std::int64_t, std::int64_t, int) {});  // all take theirs
}

}  // namespace

PinnedThreads::PinnedThreads(const std::vector<std::vector<int>>& cores, std::vector<int> before) : before_(std::move(before)) {
  std::vector<int> all;
  for (const std::vector<int>& core : cores) {
    all.insert(all.end(), core.begin(), core.end());
  }
  if (!stay_on(all)) {
    throw std::system_error(errno, std::generic_category(), "threads cannot be bound to processors (run.pin_threads)");
  }
  change(cores, all);
}

PinnedThreads::~PinnedThreads() {
  stay_on(before_);
  change({}, before_);
}

void take_core(int thread) {
  thread_local std::uint64_t taken = 0;
  if (taken == changes.load(std::memory_order_acquire)) {
    return;
  }
  const std::lock_guard lock(mutex);
  taken = changes;
  stay_on(places.empty() ? everywhere : places[static_cast<std::size_t>(thread) % places.size()]);
}

}  // namespace kf::simd
