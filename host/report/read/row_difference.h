#pragma once
// Whether two runs have the same numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/read/row_file.h"

namespace kf::report {

/// Where they part first.
struct RowDifference {
  std::string metric;
  std::int64_t step = 0;
  double a = 0, b = 0;  // gaps where a row lacks the number
};

struct RowComparison {
  std::int64_t rows = 0;               // that both have, evaluations too
  std::int64_t last_step = 0;          // of them; 0 without any
  std::optional<RowDifference> first;  // the earliest; at one step in the order of `metrics`
  std::vector<std::string> compared;   // the metrics that any row of both has
};

/// Compares rows of the same step, up to step `until`, bit by bit; nan equals nan. `metrics` as RowFile::find has them.
RowComparison compare_rows(const RowFile& a, const RowFile& b, const std::vector<std::string>& metrics, std::int64_t until);

}  // namespace kf::report
