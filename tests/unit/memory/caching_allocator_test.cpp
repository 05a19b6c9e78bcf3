#include "memory/caching_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

using namespace kf;

namespace {

/// Puts the allocator in its place for a test; `possible` is false under the address sanitizer.
struct Caching {
  Caching() { release_cached_memory(); }
  ~Caching() { cache_tensor_memory(false); }
  bool possible = cache_tensor_memory(true);
};

c10::DataPtr piece(std::size_t bytes) { return c10::GetCPUAllocator()->allocate(bytes); }

std::int64_t held() {
  const TensorMemoryHeld now = tensor_memory_held();
  return now.used + now.cached;
}

/// Fresh pages that this process was given.
long faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Takes little for so long that earlier use counts no more.
void take_little() {
  for (int i = 0; i < 3 << 16; ++i) {
    const c10::DataPtr step = piece(1000);
  }
}

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::int64_t kSpare = 32 * std::int64_t{kMiB};

}  // namespace

TEST_CASE("memory: a piece is aligned to a cache line, is its own context, and can be freed raw", "[memory]") {
  const Caching caching;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{4096}, kMiB, kMiB + 1, 40 * kMiB}) {
    CAPTURE(bytes);
    const c10::DataPtr data = piece(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(data.get()) % 64 == 0);
    CHECK(data.get_context() == data.get());
    std::memset(data.get(), 1, bytes);
    void* const raw = c10::GetCPUAllocator()->raw_allocate(bytes);
    std::memset(raw, 2, bytes);
    CHECK(static_cast<const char*>(data.get())[bytes - 1] == 1);
    c10::GetCPUAllocator()->raw_deallocate(raw);
  }
  CHECK(piece(0).get() == nullptr);
}

TEST_CASE("memory: a piece of the size of one that was freed is that one, without fresh pages", "[memory]") {
  const Caching caching;
  if (!caching.possible) {
    return;
  }
  for (const std::size_t bytes : {std::size_t{100}, 100 * kMiB}) {
    CAPTURE(bytes);
    void* first = nullptr;
    {
      const c10::DataPtr data = piece(bytes);
      std::memset(data.get(), 1, bytes);
      first = data.get();
    }
    const long before = faults();
    const c10::DataPtr again = piece(bytes);
    std::memset(again.get(), 2, bytes);
    CHECK(again.get() == first);
    CHECK(faults() - before < 1000);  // of 25,600 pages
  }
}

TEST_CASE("memory: what is kept stays near the most that was used at once, whatever sizes come", "[memory]") {
  const Caching caching;
  if (!caching.possible) {
    return;
  }
  take_little();
  const std::int64_t others = tensor_memory_held().used;
  std::int64_t most = 0;
  for (std::size_t size = 2; size <= 40; ++size) {  // one at a time, no two alike by an eighth
    const c10::DataPtr data = piece(size * size * kMiB / 4);
    most = std::max(most, tensor_memory_held().used - others);
    CHECK(held() - others <= most + most / 4 + kSpare);
  }
}

TEST_CASE("memory: after a time of little use what a time of much has left goes back", "[memory]") {
  const Caching caching;
  if (!caching.possible) {
    return;
  }
  const std::int64_t others = tensor_memory_held().used;
  { const c10::DataPtr evaluation = piece(400 * kMiB); }
  CHECK(held() - others >= 400 * std::int64_t{kMiB});
  take_little();
  CHECK(held() - others <= kSpare + 2048);
  release_cached_memory();
  CHECK(held() == others);
}

TEST_CASE("memory: threads that give each other pieces find what they wrote", "[memory]") {
  const Caching caching;
  constexpr std::size_t kThreads = 4, kRounds = 400;
  std::vector<std::vector<c10::DataPtr>> left(kThreads);
  std::vector<int> wrong(kThreads, 0);
  const auto work = [&](std::size_t thread) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      const std::size_t bytes = 64 + (i * 7919 + thread * 104729) % (i % 50 == 0 ? 3 * kMiB : 5000);
      c10::DataPtr data = piece(bytes);
      std::memset(data.get(), static_cast<int>(thread), bytes);
      std::this_thread::yield();
      wrong[thread] += static_cast<const char*>(data.get())[bytes - 1] != static_cast<char>(thread) ? 1 : 0;
      if (i % 3 == 0) {
        left[thread].push_back(std::move(data));  // freed by the main thread
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(work, thread);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == std::vector<int>(kThreads, 0));
}

TEST_CASE("memory: a piece that nobody has is refused in torch's words, and counts for nothing", "[memory]") {
  const Caching caching;
  if (!caching.possible) {
    return;
  }
  const std::int64_t before = tensor_memory_held().used;
  CHECK_THROWS_WITH(piece(std::size_t{1} << 60), Catch::Contains("you tried to allocate 1152921504606846976 bytes"));
  CHECK_THROWS_AS(piece(~std::size_t{0}), c10::Error);
  CHECK(tensor_memory_held().used == before);
}

TEST_CASE("memory: pieces outlive the allocator's time, and torch's own serves again", "[memory]") {
  c10::DataPtr ours;
  {
    const Caching caching;
    ours = piece(5000);
    std::memset(ours.get(), 3, 5000);
  }
  CHECK(c10::GetCPUAllocator() == c10::GetDefaultCPUAllocator());
  const c10::DataPtr torchs = piece(5000);
  CHECK(static_cast<const char*>(ours.get())[4999] == 3);
  ours.clear();
}
