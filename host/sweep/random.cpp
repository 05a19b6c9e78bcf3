#include "sweep/random.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kf::sweep {
namespace {

/// Steele, Lea and Flood 2014: every bit of the result depends on every bit of the number.
std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double out = 0;
  for (const double c : coefficients) {
    out = out * x + c;
  }
  return out;
}

/// Relative error below 1.15e-9.
double acklam(double p) {
  constexpr std::array<double, 6> a{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                    1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array<double, 6> b{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                    6.680131188771972e+01,  -1.328068155288572e+01, 1};
  constexpr std::array<double, 6> c{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                    -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array<double, 5> d{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1};
  constexpr double tail = 0.02425;
  if (p < tail) {
    const double q = std::sqrt(-2 * std::log(p));
    return polynomial(c, q) / polynomial(d, q);
  }
  if (p > 1 - tail) {
    return -acklam(1 - p);
  }
  const double q = p - 0.5;
  const double r = q * q;
  return polynomial(a, r) * q / polynomial(b, r);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t number, std::uint64_t attempt)
    : engine_(splitmix64(splitmix64(splitmix64(seed) ^ number) ^ (attempt << 1))) {}

double Random::draw(const Distribution& d) {
  if (const auto count = d.count(); count && !d.log) {
    const auto index = static_cast<std::int64_t>(unit() * static_cast<double>(*count));
    return d.at(std::min(index, *count - 1));
  }
  // Integers drawn as logarithms get half a step of room at both ends, so that the outermost are as likely as their neighbours.
  const double room = d.step / 2;
  const double low = d.log ? std::log(d.low - room) : d.low;
  const double high = d.log ? std::log(d.high + room) : d.high;
  const double x = low + unit() * (high - low);
  return d.nearest(d.log ? std::exp(x) : x);
}

double Random::truncated_normal(double mean, double sigma, double low, double high) {
  const double a = normal_cdf((low - mean) / sigma);
  const double b = normal_cdf((high - mean) / sigma);
  const double p = std::clamp(a + unit() * (b - a), 1e-300, 1 - 1e-16);
  return std::clamp(mean + sigma * normal_quantile(p), low, high);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double normal_quantile(double p) {
  const double x = acklam(p);
  const double error = normal_cdf(x) - p;
  const double slope = error * std::sqrt(2 * std::acos(-1.0)) * std::exp(x * x / 2);
  return std::isfinite(slope) ? x - slope / (1 + x * slope / 2) : x;
}

double log_normal_mass(double a, double b) {
  if (a > 0) {  // the upper tail cancels; by symmetry the lower one is the same
    return log_normal_mass(-b, -a);
  }
  const double mass = normal_cdf(b) - normal_cdf(a);
  return mass > 0 ? std::max(std::log(mass), -1000.0) : -1000.0;
}

}  // namespace kf::sweep
