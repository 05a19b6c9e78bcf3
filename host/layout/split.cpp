#include "layout/split.h"

#include <utility>

#include "core/error.h"

namespace kf {
namespace {

/// Which dim is divided, and over whom; a negative dim for none.
std::pair<Axis, std::int64_t> divided(const Parameter& weight) {
  switch (weight.split) {
    case Split::colwise:
    case Split::vocab: return {Axis::tp, 0};
    case Split::rowwise: return {Axis::tp, 1};
    case Split::experts: return {Axis::ep, 0};
    case Split::sequence:
    case Split::replicate: break;
  }
  return {Axis::tp, -1};
}

}  // namespace

std::vector<Cut> split_cuts(const Parameter& weight, const Mesh& mesh, std::int64_t rank) {
  const auto [axis, dim] = divided(weight);
  const std::int64_t parts = mesh.degree(axis);
  if (dim < 0 || parts == 1) {
    return {};
  }
  const std::int64_t length = weight.shape.at(static_cast<std::size_t>(dim)), units = length / weight.split_unit;
  KF_CHECK(length % weight.split_unit == 0 && units % parts == 0, Code::config,
           "{} has {} {} along dim {}, which distributed.{} = {} does not divide", weight.name, units,
           weight.split_unit > 1            ? "heads"
           : weight.split == Split::experts ? "experts"
                                            : "entries",
           dim, name_of(axis), parts);
  return {{axis, dim, Shape(static_cast<std::size_t>(parts), length / parts), mesh.coordinate(rank, axis)}};
}

}  // namespace kf
