#pragma once
// Random numbers that are the same on every machine: one stream for each (seed, trial, attempt).

#include <cstdint>
#include <random>

#include "sweep/distribution.h"

namespace kf::sweep {

class Random {
 public:
  /// Neighbouring seeds and numbers give unrelated streams (splitmix64 of each, mixed).
  Random(std::uint64_t seed, std::uint64_t number, std::uint64_t attempt = 0);

  /// Even in [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  /// An even draw of the distribution: of logarithms where it is one, every value of a countable one alike.
  double draw(const Distribution& distribution);
  /// From the normal distribution cut to [low, high], which must hold `mean`.
  double truncated_normal(double mean, double sigma, double low, double high);

 private:
  std::mt19937_64 engine_;
};

/// The normal distribution up to x.
double normal_cdf(double x);
/// Its inverse (Acklam 2003, with one step of Halley's method: full double precision).
double normal_quantile(double p);
/// log(cdf(b) - cdf(a)), a < b; never less than -1000.
double log_normal_mass(double a, double b);

}  // namespace kf::sweep
