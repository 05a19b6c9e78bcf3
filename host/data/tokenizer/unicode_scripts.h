#pragma once
// Which script a character is of, for splitting text between scripts.

#include <cstdint>

namespace kf::unicode {

inline constexpr int kAnyScript = 0;  // blanks and what has no script: goes with anything

int split_script(std::uint32_t cp);

}  // namespace kf::unicode
