#pragma once
// Which part of a weight lies on this rank. One description for first values, moments, norms, checkpoints and resharding.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/mesh/mesh.h"

namespace kf {

using Shape = std::vector<std::int64_t>;

/// A box of a tensor: for each dim where it begins and how long it is.
struct Range {
  Shape begin, size;

  /// All of a tensor.
  static Range whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }
  bool covers(const Shape& shape) const;
  std::int64_t numel() const;
  /// What both hold; nothing where that is empty.
  std::optional<Range> overlap(const Range& other) const;
  /// This box as seen from inside of `outer`, which holds it.
  Range within(const Range& outer) const;
  /// A view. `whole` has the shape that the box is of.
  at::Tensor of(const at::Tensor& whole) const;
  bool operator==(const Range&) const = default;
};

/// One dim, divided over the ranks along an axis, in order of ranks.
struct Cut {
  Axis axis = Axis::dp_shard;
  std::int64_t dim = 0;
  Shape sizes;            // of every rank's part; 0 where a rank has none
  std::int64_t part = 0;  // this rank's place among them

  std::int64_t begin() const;
  std::int64_t size() const { return sizes[static_cast<std::size_t>(part)]; }
};

/// Cuts, outer first: those of tensor and expert parallelism, then that of dp_shard. What the outer ones leave is `held`: forward reads it
/// on this rank, whole. Which rows of it the rank trains, the last one says.
struct Placement {
  std::vector<Cut> cuts;

  /// No cut at all.
  bool whole() const { return cuts.empty(); }
  /// The cut along dp_shard; null where this rank trains all that it holds.
  const Cut* rows() const;
  /// The part of a tensor of this shape that is trained here,
  Range of(const Shape& whole) const;
  /// and that forward reads here.
  Range held(const Shape& whole) const;
};

}  // namespace kf
