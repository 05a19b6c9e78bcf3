#pragma once
// The parts of a checkpoint that checkpoint.exclude_from_loading may name besides weights.

#include <algorithm>
#include <iterator>
#include <string_view>

namespace kf::config {

inline constexpr std::string_view kLoadParts[] = {"model", "optimizer", "optimizer.moments", "data", "rng"};

inline bool is_load_part(std::string_view word) {
  return std::find(std::begin(kLoadParts), std::end(kLoadParts), word) != std::end(kLoadParts);
}

}  // namespace kf::config
