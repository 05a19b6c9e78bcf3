#pragma once
// Kinds of characters of ASCII. Those of <cctype> depend on the C library's locale, which a script can change.

namespace kf {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_alnum(char c) { return is_digit(c) || is_letter(c); }

}  // namespace kf
