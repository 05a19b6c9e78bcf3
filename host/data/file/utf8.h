#pragma once
// UTF-8 at the speed of memory.

#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

/// RFC 3629: no surrogates, no overlong forms.
bool valid_utf8(std::string_view text);
/// The byte, from 0, at which text stops being UTF-8; its size when it does not.
std::size_t invalid_utf8_at(std::string_view text);
/// What is wrong with text that is no UTF-8, and what to do: "not valid UTF-8 at byte 5 of 9 (0xe9); ...".
std::string utf8_fault(std::string_view text);
/// "UTF-16 text; convert it ..." for text that begins like that, with its mark or without; "" for other. It may be valid UTF-8.
std::string utf16_fault(std::string_view text);
/// Code points of valid UTF-8.
std::int64_t count_characters(std::string_view text);

}  // namespace kf
