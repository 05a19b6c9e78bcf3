#include "report/read/thinned.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/read/columns.h"

namespace kf::report {
namespace {

/// The points of one stretch that are kept.
struct Bucket {
  std::optional<std::size_t> low, high, not_finite;

  void add(std::size_t i, std::span<const double> y) {
    if (!std::isfinite(y[i])) {
      not_finite = not_finite.value_or(i);
      return;
    }
    low = !low || y[i] < y[*low] ? i : low;
    high = !high || y[i] > y[*high] ? i : high;
  }
  void flush(std::vector<std::size_t>& out) {
    std::vector<std::size_t> kept;
    for (const std::optional<std::size_t>& index : {low, high, not_finite}) {
      if (index && std::find(kept.begin(), kept.end(), *index) == kept.end()) {
        kept.push_back(*index);
      }
    }
    std::sort(kept.begin(), kept.end());
    out.insert(out.end(), kept.begin(), kept.end());
    *this = {};
  }
};

}  // namespace

std::vector<std::size_t> thinned(std::span<const double> x, std::span<const double> y, std::size_t buckets) {
  std::vector<std::size_t> there;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_gap(y[i])) {
      there.push_back(i);
    }
  }
  if (there.size() <= 2 * buckets) {
    return there;
  }
  const double low = x[there.front()];
  const double width = x[there.back()] - low;
  std::vector<std::size_t> out{there.front()};
  Bucket bucket;
  std::size_t current = 0;
  for (std::size_t k = 1; k + 1 < there.size(); ++k) {
    const double share = width > 0 ? (x[there[k]] - low) / width : 0;
    const auto at = std::min(buckets - 1, static_cast<std::size_t>(std::max(0.0, share) * static_cast<double>(buckets)));
    if (at != current) {
      bucket.flush(out);
      current = at;
    }
    bucket.add(there[k], y);
  }
  bucket.flush(out);
  out.push_back(there.back());
  return out;
}

}  // namespace kf::report
