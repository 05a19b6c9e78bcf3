#pragma once
// Values written as text: numbers and booleans in the spellings of TOML, Python and the shell, and bracketed literals.

#include <cstdint>
#include <optional>
#include <string_view>

#include "config/tree/node.h"

namespace kf::config {

/// 42, -7, +3, 1_000, 0x10, 0o17, 0b101. Nothing else, and nothing past int64.
std::optional<std::int64_t> parse_int(std::string_view text);
/// 1e-4, .5, 5., 1_000.5, inf, nan, infinity, with a sign; integers too.
std::optional<double> parse_real(std::string_view text);
/// Whether `text` is all the digits of an integer that int64 cannot hold.
bool is_past_int(std::string_view text);
/// Whether `text` is a number too large, or too close to zero, for a double: 1e999 is a typo rather than inf.
bool is_past_real(std::string_view text);
/// true, yes, on, y, 1 and false, no, off, n, 0, in any case.
std::optional<bool> parse_bool(std::string_view text);

/// A value of the command line. Quoted text loses its quotes; [..], (..) and {..} in TOML or Python spelling become lists and tables when
/// they are well formed; everything else stays text. All of it is loose, and keeps its raw text in origin.text.
Node parse_value(std::string_view text, const Origin& origin);

/// A list of literals, "0.9, 0.95", as Python reads it without brackets; nothing when it is not one.
std::optional<Array> parse_bare_list(std::string_view text, const Origin& origin);

}  // namespace kf::config
