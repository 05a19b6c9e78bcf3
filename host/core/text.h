#pragma once
// Strings for people: formatting, numbers, lists, the nearest spelling.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

// What `format` puts in place of `{}`.
inline std::string to_text(std::string_view value) { return std::string(value); }
inline std::string to_text(const char* value) { return value; }
inline std::string to_text(const std::string& value) { return value; }
inline std::string to_text(const std::filesystem::path& value) { return value.string(); }
inline std::string to_text(bool value) { return value ? "true" : "false"; }
inline std::string to_text(char value) { return std::string(1, value); }
template <std::integral T>
std::string to_text(T value) {
  return std::to_string(value);
}
/// The shortest decimal that reads back to the same double: 0.1, 3e-04 as 0.0003, 1e+300, inf, nan.
std::string to_text(double value);
inline std::string to_text(float value) { return to_text(static_cast<double>(value)); }

/// Replaces each `{}` of `pattern` by the next of `values`.
std::string format_texts(std::string_view pattern, std::initializer_list<std::string> values);

/// format("{} of {}", 3, "four") == "3 of four". Only `{}`; std::format is not in g++ 12 and torch ships another fmt.
template <class... Args>
std::string format(std::string_view pattern, const Args&... args) {
  return format_texts(pattern, {to_text(args)...});
}

/// `value` with `digits` decimals: fixed(2.5, 3) == "2.500".
std::string fixed(double value, int digits);
/// 12345678 as "12,345,678".
std::string grouped(std::int64_t value);
/// Bytes as "11.2 MB" (decimal units).
std::string human_bytes(double bytes);
/// Seconds as "8s", "5m02", "3h07", "2d04h".
std::string human_seconds(double seconds);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
/// 'text' in double quotes with escapes, as TOML, JSON and Lua all read it.
std::string quoted(std::string_view text);

/// Edit distance with transpositions (Damerau-Levenshtein, optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The nearest of `candidates`, or "" when nothing is near enough to be a likely typo.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Whether `text` is valid UTF-8 (RFC 3629: no surrogates, no overlong forms).
bool is_utf8(std::string_view text);

/// Whether the whole of `text` matches `pattern` (`*` any run, dots included; `?` one character).
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace kf
