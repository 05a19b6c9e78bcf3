#include "checkpoint/difference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/text.h"

namespace kf {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 22;  // numbers that are widened at a time

std::string shape_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : shape) {
    parts.push_back(std::to_string(dim));
  }
  return "(" + join(parts, ", ") + ")";
}

/// Sums over a pair of tensors.
struct Sums {
  double largest = 0, moved = 0, before = 0;  // the largest |b - a|, the squares of b - a and of a, over numbers
  std::int64_t nans_a = 0, nans_b = 0;
  bool nan = false;  // at some place of one alone
};

double squares(const at::Tensor& x) { return x.dot(x).item<double>(); }

Sums sums_of(const at::Tensor& a, const at::Tensor& b) {
  Sums out;
  const at::Tensor flat_a = a.flatten(), flat_b = b.flatten();
  for (std::int64_t begin = 0; begin < flat_a.numel(); begin += kPiece) {
    const std::int64_t length = std::min(kPiece, flat_a.numel() - begin);
    at::Tensor wide = flat_a.narrow(0, begin, length).to(at::kDouble);
    const at::Tensor other = flat_b.narrow(0, begin, length).to(at::kDouble);
    const at::Tensor nan_a = wide.isnan(), nan_b = other.isnan(), nowhere = nan_a.logical_or(nan_b);
    const at::Tensor step = (other - wide).masked_fill_(nowhere.logical_or(wide.eq(other)), 0);
    wide = wide.masked_fill(nan_a, 0);
    out.nans_a += nan_a.sum().item<std::int64_t>();
    out.nans_b += nan_b.sum().item<std::int64_t>();
    out.nan = out.nan || nan_a.ne(nan_b).any().item<bool>();
    out.largest = std::max(out.largest, step.abs().max().item<double>());
    out.moved += squares(step);
    out.before += squares(wide);
  }
  return out;
}

double ratio(double moved, double before) {
  if (before > 0) {
    return std::sqrt(moved / before);
  }
  return moved > 0 ? std::numeric_limits<double>::infinity() : 0;
}

/// Farthest first; what is no number before all.
bool is_farther(const WeightMove& a, const WeightMove& b) {
  if (std::isnan(a.relative) != std::isnan(b.relative)) {
    return std::isnan(a.relative);
  }
  return a.relative != b.relative ? a.relative > b.relative : a.name < b.name;
}

}  // namespace

WeightDifference difference(const NamedTensors& a, const NamedTensors& b) {
  WeightDifference out;
  const std::set<std::string> in_a(a.names.begin(), a.names.end()), in_b(b.names.begin(), b.names.end());
  std::set_difference(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(out.only_a));
  std::set_difference(in_b.begin(), in_b.end(), in_a.begin(), in_a.end(), std::back_inserter(out.only_b));
  double moved = 0, before = 0;
  for (const std::string& name : in_a) {
    if (!in_b.contains(name)) {
      continue;
    }
    const Shape shape = a.ranged->kind(name).shape, other = b.ranged->kind(name).shape;
    if (shape != other) {
      out.misshapen.push_back(format("{} is {} in A and {} in B", name, shape_text(shape), shape_text(other)));
      continue;
    }
    const Sums sums = sums_of(a.get(name), b.get(name));
    moved += sums.moved;
    before += sums.before;
    if (sums.nans_a + sums.nans_b > 0) {
      out.nans.push_back({name, sums.nans_a, sums.nans_b});
    }
    if (sums.moved == 0 && sums.largest == 0 && !sums.nan) {
      ++out.equal;
    } else {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      out.moved.push_back(
          {name, shape, sums.nan ? nan : sums.largest, std::sqrt(sums.moved), sums.nan ? nan : ratio(sums.moved, sums.before)});
    }
  }
  out.norm = std::sqrt(moved);
  out.relative = ratio(moved, before);
  std::sort(out.moved.begin(), out.moved.end(), is_farther);
  return out;
}

}  // namespace kf
