#pragma once
// Numbers of rows, name by name, with gaps where a row lacks one.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf::report {

/// What a column has where its row lacks the number, or has null alone (a mean over nothing): a NaN of its own, so that a "nan" of the run
/// is told apart from it.
inline constexpr std::uint64_t kGapBits = 0x7ff8'0000'6b66'6761;
inline double gap() { return std::bit_cast<double>(kGapBits); }
inline bool is_gap(double value) { return std::bit_cast<std::uint64_t>(value) == kGapBits; }

struct Column {
  std::string name;
  std::vector<double> values;  // one a row; the same double that the run wrote, or a gap
};

/// Rows in the order of their file.
struct Columns {
  std::vector<std::int64_t> steps;  // one a row
  std::vector<Column> columns;      // in the order in which their names came first

  std::size_t rows() const { return steps.size(); }
  /// Null without one.
  const Column* find(std::string_view name) const;
};

}  // namespace kf::report
