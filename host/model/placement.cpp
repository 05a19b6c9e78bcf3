#include "model/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace kf {

bool Range::covers(const Shape& shape) const { return *this == whole(shape); }

std::int64_t Range::numel() const { return std::accumulate(size.begin(), size.end(), std::int64_t{1}, std::multiplies<>()); }

std::optional<Range> Range::overlap(const Range& other) const {
  Range out;
  for (std::size_t dim = 0; dim < size.size(); ++dim) {
    const std::int64_t first = std::max(begin[dim], other.begin[dim]);
    const std::int64_t end = std::min(begin[dim] + size[dim], other.begin[dim] + other.size[dim]);
    if (first >= end) {
      return std::nullopt;
    }
    out.begin.push_back(first);
    out.size.push_back(end - first);
  }
  return out;
}

Range Range::within(const Range& outer) const {
  Range out = *this;
  for (std::size_t dim = 0; dim < size.size(); ++dim) {
    out.begin[dim] -= outer.begin[dim];
  }
  return out;
}

at::Tensor Range::of(const at::Tensor& whole) const {
  at::Tensor part = whole;
  for (std::size_t dim = 0; dim < size.size(); ++dim) {
    part = part.narrow(static_cast<std::int64_t>(dim), begin[dim], size[dim]);
  }
  return part;
}

std::int64_t Cut::begin() const { return std::accumulate(sizes.begin(), sizes.begin() + part, std::int64_t{0}); }

namespace {

Range cut_by(const std::vector<Cut>& cuts, std::size_t count, const Shape& whole) {
  Range out = Range::whole(whole);
  for (std::size_t i = 0; i < count; ++i) {
    const Cut& cut = cuts[i];
    const auto dim = static_cast<std::size_t>(cut.dim);
    KF_CHECK(std::accumulate(cut.sizes.begin(), cut.sizes.end(), std::int64_t{0}) == out.size[dim], Code::other,
             "a cut of dim {} does not add up to its {} rows", cut.dim, out.size[dim]);
    out.begin[dim] += cut.begin();
    out.size[dim] = cut.size();
  }
  return out;
}

}  // namespace

const Cut* Placement::rows() const { return !cuts.empty() && cuts.back().axis == Axis::dp_shard ? &cuts.back() : nullptr; }

Range Placement::of(const Shape& whole) const { return cut_by(cuts, cuts.size(), whole); }

Range Placement::held(const Shape& whole) const { return cut_by(cuts, cuts.size() - (rows() != nullptr ? 1 : 0), whole); }

}  // namespace kf
