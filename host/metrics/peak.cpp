#include "metrics/peak.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "core/log.h"
#include "kernels/product/product.h"

namespace kf {
namespace {

struct Row {
  std::string_view part_of_name;
  double tflops;
};
// The first match counts, so a longer name stands before one that it contains.
constexpr Row kCudaPeaks[] = {
    {"GB200", 2500}, {"B200", 2250}, {"GH200", 989}, {"H200", 989}, {"H100 PCIe", 756}, {"H100", 989},
    {"H800", 989},   {"A100", 312},  {"A10G", 125},  {"L40S", 362}, {"RTX 4090", 330},  {"RTX 3090", 142},
};

/// Seconds since its construction that this process computed: of the clock, or of its processors shared out over the threads where others
/// kept them waiting. On a busy machine the clock alone made the peak, and with it MFU, several times wrong.
class Stopwatch {
 public:
  double seconds() const {
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
    const double busy = static_cast<double>(std::clock() - busy_) / CLOCKS_PER_SEC / at::get_num_threads();
    return busy > 1e-4 ? std::min(wall, busy) : wall;  // std::clock counts in microseconds
  }

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  std::clock_t busy_ = std::clock();
};

/// The best rate of n x n x n products within `budget` seconds, at least one.
double product_rate(std::int64_t n, at::ScalarType type, double budget) {
  using clock = std::chrono::steady_clock;
  const at::Tensor a = at::full({n, n}, 0.5, at::TensorOptions().dtype(type));
  const double work = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  product_nn(a, a);  // threads and kernels are made by the first one of a process, and that may take all of the budget
  double best = 0;
  const auto start = clock::now();
  do {
    const Stopwatch watch;
    product_nn(a, a);
    best = std::max(best, work / watch.seconds());
  } while (std::chrono::duration<double>(clock::now() - start).count() < budget);
  return best;
}

/// A small product first: where a type has no instructions, the large one would take seconds.
double best_rate(at::ScalarType type) {
  const double small = product_rate(256, type, 0.01);
  constexpr double kLargeWork = 2.0 * 1024 * 1024 * 1024;
  return small * 0.1 > kLargeWork ? std::max(small, product_rate(1024, type, 0.06)) : small;
}

}  // namespace

Peak cuda_peak(std::string_view device_name, int compute_capability_major) {
  for (const Row& row : kCudaPeaks) {
    if (device_name.find(row.part_of_name) != std::string_view::npos) {
      return {row.tflops * 1e12, "table"};
    }
  }
  const int major = compute_capability_major;
  double tflops = 100;
  for (const auto& [from, of_it] : {std::pair(8, 312), std::pair(9, 989), std::pair(10, 2250)}) {
    tflops = major >= from ? of_it : tflops;
  }
  log::warn("no peak is known for '{}': MFU is relative to a guess of {} TFLOP/s from its compute capability {}.x", device_name, tflops,
            major);
  return {tflops * 1e12, "guessed from compute capability"};
}

Peak measure_cpu_peak(at::ScalarType compute) {
  static std::map<std::pair<at::ScalarType, int>, Peak> known;  // runs of one process, as trials may be, measure once
  const std::pair key(compute, at::get_num_threads());
  if (const auto found = known.find(key); found != known.end()) {
    return found->second;
  }
  const at::NoGradGuard no_grad;
  Peak peak{best_rate(at::kFloat), "measured, fp32"};
  if (compute != at::kFloat) {
    const double low = best_rate(compute);
    if (low > peak.flops) {
      peak = {low, std::string("measured, ") + c10::toString(compute)};
    }
  }
  known.emplace(key, peak);
  return peak;
}

}  // namespace kf
