#include "bench/compare.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

namespace kf::bench {
namespace {

double time_once(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work.body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void compare(const std::string& title, const Work& subject, const Work& reference, double seconds) {
  time_once(subject);  // first calls allocate
  time_once(reference);
  double best = std::numeric_limits<double>::infinity();
  double best_reference = best;
  double spent = 0;
  for (int round = 0; round < 3 || spent < 2 * seconds; ++round) {
    const double a = time_once(subject);
    const double b = time_once(reference);
    best = std::min(best, a);
    best_reference = std::min(best_reference, b);
    spent += a + b;
  }
  std::printf("%-16s %9.3f ms  %-28s %9.3f ms  %-38s %6.2f x\n", title.c_str(), best * 1e3, subject.name.c_str(), best_reference * 1e3,
              reference.name.c_str(), best / best_reference);
  std::fflush(stdout);
}

}  // namespace kf::bench
