#pragma once

#include <cstddef>
#include <string_view>

namespace kf::report {

/// Bytes of the character (of UTF-8) that `text` begins with; 0 where it begins with none.
std::size_t character_size(std::string_view text);

}  // namespace kf::report
