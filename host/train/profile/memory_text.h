#pragma once
// The memory of a step for people.

#include <string>

#include "train/profile/memory_watch.h"

namespace kf {

/// By kind at the start, the peak and the end of step `step`; and by layer at the peak, the largest first. `place`: where the peak was.
std::string memory_table(const StepMemory& memory, std::int64_t step, const std::string& place);

}  // namespace kf
