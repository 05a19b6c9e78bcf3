#include "layout/split.h"

#include "core/error.h"

namespace kf {
namespace {

/// One dim, divided along one axis.
struct Division {
  Axis axis;
  std::int64_t dim;
  const char* what;  // its entries
};

bool holds_experts(const Parameter& weight) { return weight.stack && weight.shape.size() == 3; }

/// Outer first. Of a stack of experts' matrices the outputs or inputs of each are divided over tp, and the experts themselves over ep.
std::vector<Division> divisions(const Parameter& weight) {
  const char* const numbers = weight.split_unit > 1 ? "heads" : "entries";
  const bool experts = holds_experts(weight);
  switch (weight.split) {
    case Split::colwise:
      return experts ? std::vector<Division>{{Axis::tp, 1, numbers}, {Axis::ep, 0, "experts"}}
                     : std::vector<Division>{{Axis::tp, 0, numbers}};
    case Split::rowwise:
      return experts ? std::vector<Division>{{Axis::tp, 2, numbers}, {Axis::ep, 0, "experts"}}
                     : std::vector<Division>{{Axis::tp, 1, numbers}};
    case Split::vocab: return {{Axis::tp, 0, numbers}};
    case Split::experts: return {{Axis::ep, 0, "experts"}};
    case Split::sequence:
    case Split::replicate: break;
  }
  return {};
}

}  // namespace

std::vector<Cut> split_cuts(const Parameter& weight, const Mesh& mesh, std::int64_t rank) {
  std::vector<Cut> cuts;
  for (const Division& division : divisions(weight)) {
    const std::int64_t parts = mesh.degree(division.axis);
    if (parts == 1) {
      continue;
    }
    const std::int64_t unit = division.axis == Axis::tp ? weight.split_unit : 1;
    const std::int64_t length = weight.shape.at(static_cast<std::size_t>(division.dim)), units = length / unit;
    KF_CHECK(length % unit == 0 && units % parts == 0, Code::config, "{} has {} {} along dim {}, which distributed.{} = {} does not divide",
             weight.name, units, division.what, division.dim, name_of(division.axis), parts);
    cuts.push_back(
        {division.axis, division.dim, Shape(static_cast<std::size_t>(parts), length / parts), mesh.coordinate(rank, division.axis)});
  }
  return cuts;
}

}  // namespace kf
