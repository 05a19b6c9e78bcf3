#include "bench/compare.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "bench/memory.h"

namespace kf::bench {
namespace {

double time_once(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work.body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// MB that tensors held beyond what they held before, at most.
double memory_of(const Work& work) {
  reset_peak();
  work.body();
  return static_cast<double>(peak_memory()) / 1e6;
}

}  // namespace

double compare(const std::string& title, const Work& subject, const Work& reference, double seconds) {
  time_once(subject);  // first calls allocate what stays
  time_once(reference);
  const double memory = memory_of(subject);
  const double reference_memory = memory_of(reference);
  double best = std::numeric_limits<double>::infinity();
  double best_reference = best;
  double spent = 0;
  for (int round = 0; round < 2 || spent < 2 * seconds; ++round) {
    const double a = time_once(subject);
    const double b = time_once(reference);
    best = std::min(best, a);
    best_reference = std::min(best_reference, b);
    spent += a + b;
  }
  std::printf("%-18s %9.3f ms %7.1f MB  %-30s %9.3f ms %7.1f MB  %-38s %5.2f x", title.c_str(), best * 1e3, memory, subject.name.c_str(),
              best_reference * 1e3, reference_memory, reference.name.c_str(), best / best_reference);
  if (reference_memory > 0.1) {
    std::printf(" %5.2f x", memory / reference_memory);
  }
  std::printf("\n");
  std::fflush(stdout);
  return best / best_reference;
}

}  // namespace kf::bench
