#include "report/read/thinned.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/read/columns.h"

namespace kf::report {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// The points of one stretch that are kept.
struct Bucket {
  std::size_t low = kNone, high = kNone, not_finite = kNone;
  double least = 0, most = 0;  // at these

  void add(std::size_t i, double y) {
    if (!std::isfinite(y)) {
      not_finite = std::min(not_finite, i);
      return;
    }
    if (low == kNone || y < least) {
      low = i;
      least = y;
    }
    if (high == kNone || y > most) {
      high = i;
      most = y;
    }
  }
  void flush(std::vector<std::size_t>& out) {
    std::array<std::size_t, 3> kept{low, high, not_finite};
    std::sort(kept.begin(), kept.end());
    const auto end = std::unique(kept.begin(), kept.end());
    out.insert(out.end(), kept.begin(), std::find(kept.begin(), end, kNone));
    *this = {};
  }
};

}  // namespace

std::vector<std::size_t> thinned(std::span<const double> x, std::span<const double> y, std::size_t buckets) {
  std::size_t count = 0, first = 0, last = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!is_gap(y[i])) {
      first = count == 0 ? i : first;
      last = i;
      ++count;
    }
  }
  std::vector<std::size_t> out;
  if (count <= 2 * buckets) {
    for (std::size_t i = first; i < y.size() && out.size() < count; ++i) {
      if (!is_gap(y[i])) {
        out.push_back(i);
      }
    }
    return out;
  }
  const double low = x[first];
  const double width = x[last] - low;
  out.push_back(first);
  Bucket bucket;
  std::size_t current = 0;
  for (std::size_t i = first + 1; i < last; ++i) {
    if (is_gap(y[i])) {
      continue;
    }
    const double share = width > 0 ? (x[i] - low) / width : 0;
    const auto at = std::min(buckets - 1, static_cast<std::size_t>(std::max(0.0, share) * static_cast<double>(buckets)));
    if (at != current) {
      bucket.flush(out);
      current = at;
    }
    bucket.add(i, y[i]);
  }
  bucket.flush(out);
  out.push_back(last);
  return out;
}

}  // namespace kf::report
