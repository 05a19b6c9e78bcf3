#pragma once
// Memory that the process holds.

#include <cstdint>

namespace kf {

/// Resident set of this process in bytes; 0 where the system does not tell.
std::int64_t resident_bytes();

}  // namespace kf
