#pragma once
// Round numbers along an axis.

#include <cstddef>
#include <string>
#include <vector>

namespace kf::report {

/// An axis from `low` to `high`, both as they are drawn: of a logarithmic one above 0.
struct Axis {
  double low = 0, high = 1;
  bool log = false;

  /// 0 at `low`, 1 at `high`.
  double share(double value) const;
};

/// Round numbers of the axis, ascending, about `most` of them (at least 1, at most twice as many): multiples of 1, 2 or 5 times a power of
/// ten; of a logarithmic axis powers of ten, where it has two or more of them.
std::vector<double> ticks(const Axis& axis, std::size_t most);

/// Texts of ticks, with as many digits as tell them apart: "0.002", "1e-05", "15000", "1.5e+06".
std::vector<std::string> tick_texts(const std::vector<double>& values);

}  // namespace kf::report
