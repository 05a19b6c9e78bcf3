#include "report/read/row_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kf::report {
namespace {

bool alike(double a, double b) {
  if (is_gap(a) || is_gap(b)) {
    return is_gap(a) && is_gap(b);
  }
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// The steps that both have, and the rows of each there.
struct Match {
  std::int64_t step = 0;
  std::size_t a = 0, b = 0;
};

std::vector<Match> matches(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b, std::int64_t until) {
  std::vector<Match> out;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size() && a[i] <= until;) {
    if (a[i] == b[k]) {
      out.push_back({a[i], i++, k++});
    } else {
      ++(a[i] < b[k] ? i : k);
    }
  }
  return out;
}

}  // namespace

RowComparison compare_rows(const RowFile& a, const RowFile& b, const std::vector<std::string>& metrics, std::int64_t until) {
  RowComparison out;
  for (const auto columns : {&RowFile::steps, &RowFile::evals}) {
    const std::vector<Match> both = matches((a.*columns)().steps, (b.*columns)().steps, until);
    out.rows += static_cast<std::int64_t>(both.size());
    out.last_step = both.empty() ? out.last_step : std::max(out.last_step, both.back().step);
  }
  for (const std::string& metric : metrics) {
    const RowFile::Series left = a.find(metric), right = b.find(metric);
    if (left.values == nullptr || right.values == nullptr) {
      continue;
    }
    const std::vector<Match> both = matches(*left.steps, *right.steps, until);
    if (!both.empty()) {
      out.compared.push_back(metric);
    }
    const auto parts =
        std::find_if(both.begin(), both.end(), [&](const Match& at) { return !alike((*left.values)[at.a], (*right.values)[at.b]); });
    if (parts != both.end() && (!out.first || parts->step < out.first->step)) {
      out.first = RowDifference{metric, parts->step, (*left.values)[parts->a], (*right.values)[parts->b]};
    }
  }
  return out;
}

}  // namespace kf::report
