// Threads of loops: who they are, and where they stay.

#include <ATen/Parallel.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/cores.h"
#include "kernels/simd/pinned.h"
#include "kernels/simd/threads.h"

#include <catch2/catch.hpp>

// Of libgomp.
extern "C" void omp_set_max_active_levels(int levels);
extern "C" int omp_get_max_active_levels();

namespace kf::test {
namespace {

constexpr int kThreads = 3;

/// LibTorch's number of threads, set back at the end.
class Threads {
 public:
  Threads() : before_(at::get_num_threads()) { at::set_num_threads(kThreads); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// What `look` says on each thread of a loop of so many shares.
template <class Look>
auto of_threads(int shares, Look look) {
  std::vector<decltype(look())> out(static_cast<std::size_t>(shares));
  simd::share(shares, 1, [&](std::int64_t, std::int64_t, int thread) { out[static_cast<std::size_t>(thread)] = look(); });
  return out;
}

}  // namespace

TEST_CASE("threads: a loop of fewer shares ends none, and the next larger one has the same", "[threads]") {
  const Threads three;
  const auto all = of_threads(kThreads, &::gettid);
  for (const int shares : {2, 3, 1, 3, 2, 3}) {
    const auto some = of_threads(shares, &::gettid);
    CHECK(std::equal(some.begin(), some.end(), all.begin()));
  }
}

TEST_CASE("threads: shares cover all numbers once, and what one throws is thrown", "[threads]") {
  const Threads three;
  for (const std::int64_t count : {0, 1, 2, 3, 100, 1001}) {
    for (const std::int64_t grain : {1, 40, 5000}) {
      CAPTURE(count, grain);
      std::vector<int> seen(static_cast<std::size_t>(count));
      simd::share(count, grain, [&](std::int64_t first, std::int64_t end, int) {
        for (std::int64_t i = first; i < end; ++i) {
          ++seen[static_cast<std::size_t>(i)];
        }
      });
      CHECK(std::count(seen.begin(), seen.end(), 1) == count);
    }
  }
  CHECK_THROWS_AS(simd::share(3, 1, [](std::int64_t first, std::int64_t, int) { first == 2 ? throw std::runtime_error("2") : void(); }),
                  std::runtime_error);
}

TEST_CASE("threads: all shares are done where OpenMP gives fewer threads than it is asked for", "[threads]") {
  const Threads three;
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);  // as OMP_THREAD_LIMIT=1 does, and OMP_DYNAMIC on a busy machine
  std::vector<int> seen(100);
  simd::share(100, 1, [&](std::int64_t first, std::int64_t end, int) {
    for (std::int64_t i = first; i < end; ++i) {
      ++seen[static_cast<std::size_t>(i)];
    }
  });
  omp_set_max_active_levels(levels);
  CHECK(std::count(seen.begin(), seen.end(), 1) == 100);
}

TEST_CASE("threads: pinned ones stay on their cores, the first one takes what is left, and all go where they were", "[threads]") {
  const Threads three;
  const auto places = [] { return of_threads(kThreads, [] { return processor_list(allowed_processors()); }); };
  const std::vector<std::string> before = places();
  const std::vector<int> all = allowed_processors();
  const std::vector<int> first{all.front()}, last{all.back()};
  {
    const simd::PinnedThreads pinned({first, last}, all);
    std::vector<int> both = {all.front(), all.back()};
    both.erase(std::unique(both.begin(), both.end()), both.end());
    CHECK(places() == std::vector<std::string>{processor_list(both), processor_list(last), processor_list(first)});
    at::set_num_threads(2);  // a thread ends, and another one begins
    of_threads(2, &::gettid);
    at::set_num_threads(kThreads);
    CHECK(places() == std::vector<std::string>{processor_list(both), processor_list(last), processor_list(first)});
  }
  CHECK(places() == before);
}

}  // namespace kf::test
