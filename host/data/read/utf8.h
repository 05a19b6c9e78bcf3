#pragma once
// UTF-8 at the speed of memory.

#include <cstdint>
#include <string_view>

namespace kf {

/// RFC 3629: no surrogates, no overlong forms.
bool valid_utf8(std::string_view text);
/// The byte, from 0, at which text stops being UTF-8; its size when it does not.
std::size_t invalid_utf8_at(std::string_view text);
/// Code points of valid UTF-8.
std::int64_t count_characters(std::string_view text);

}  // namespace kf
