#include "report/terminal/ticks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/decimal.h"

namespace kf::report {
namespace {

constexpr std::size_t kMostTries = 16;

/// Twice as many where it would be one alone.
std::vector<double> linear_ticks(double low, double high, std::size_t most) {
  const double rough = (high - low) / static_cast<double>(std::max<std::size_t>(1, most));
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    step = factor * power >= rough ? factor * power : step;
  }
  std::vector<double> out;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && out.size() <= 2 * most; ++i) {
    out.push_back(i == 0 ? 0 : i * step);
  }
  return out.size() < 2 && most < kMostTries ? linear_ticks(low, high, 2 * most) : out;
}

std::vector<double> log_ticks(double low, double high, std::size_t most) {
  const double first = std::ceil(std::log10(low) - 1e-9), last = std::floor(std::log10(high) + 1e-9);
  const double every = std::max(1.0, std::ceil((last - first + 1) / static_cast<double>(std::max<std::size_t>(1, most))));
  std::vector<double> out;
  for (double power = first; power <= last; power += every) {
    out.push_back(std::pow(10.0, power));
  }
  return out.size() >= 2 ? out : linear_ticks(low, high, most);
}

}  // namespace

double Axis::share(double value) const {
  if (high <= low) {
    return 0.5;
  }
  if (log) {
    const double whole = std::log(high / low);
    return std::isfinite(whole) ? std::log(value / low) / whole : (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  }
  const double half = high / 2 - low / 2;  // the whole may be more than the largest number
  return half > 0 ? (value / 2 - low / 2) / half : 0.5;
}

std::vector<double> ticks(const Axis& axis, std::size_t most) {
  if (axis.high <= axis.low || !std::isfinite(axis.high - axis.low)) {
    return {axis.low};
  }
  const std::vector<double> out = axis.log ? log_ticks(axis.low, axis.high, most) : linear_ticks(axis.low, axis.high, most);
  return out.empty() ? std::vector<double>{axis.low} : out;
}

std::vector<std::string> tick_texts(const std::vector<double>& values) {
  std::vector<std::string> out;
  for (int digits = 3; digits <= 15; ++digits) {
    out.clear();
    for (const double value : values) {
      const bool whole = value == std::floor(value) && std::abs(value) < 1e6;
      out.push_back(whole ? general(value, 7) : general(value, digits));
    }
    if (std::set<std::string>(out.begin(), out.end()).size() == values.size()) {
      break;
    }
  }
  return out;
}

}  // namespace kf::report
