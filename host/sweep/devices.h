#pragma once
// Which GPUs a trial gets.

#include <cstdint>
#include <string>
#include <vector>

namespace kf::sweep {

/// The devices of the trial at `place` (0 to trials at a time - 1), one for each of its `ranks`, as CUDA_VISIBLE_DEVICES takes them:
/// places get devices of their own as far as these go, then they begin anew. "" where there are none.
std::string devices_of_place(std::int64_t place, std::int64_t ranks, const std::vector<std::string>& devices);

}  // namespace kf::sweep
