#pragma once
// What tensor and expert parallelism make of a weight: cuts, by what its layer has declared.

#include <cstdint>
#include <vector>

#include "model/parameter.h"
#include "parallel/mesh/mesh.h"

namespace kf {

/// The cuts of `weight` along tp and ep, for `rank` of the mesh; none where it lies whole on each of these ranks. The cut along dp_shard is
/// of what they leave. Throws Code::config, naming the weight, where its heads or experts are no multiple of the ranks.
std::vector<Cut> split_cuts(const Parameter& weight, const Mesh& mesh, std::int64_t rank);

}  // namespace kf
