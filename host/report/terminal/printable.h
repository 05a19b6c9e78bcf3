#pragma once
// Texts of others on a terminal, and whether it shows colours.

#include <cstddef>
#include <string>
#include <string_view>

namespace kf::report {

/// `text` on one line: control characters, what turns the direction of writing, and bytes that are no UTF-8 as \x1b, so that a name can
/// neither move the cursor nor hide another one.
std::string printable(std::string_view text);

/// At most `columns` characters of printable text, the last one "…" where some are missing.
std::string shortened(std::string_view text, std::size_t columns);

/// `text` in lines of at most `columns` characters, broken at blanks where there are any, else anywhere; lines after the first are
/// indented. As it is where `columns` is 0. No newline at the end.
std::string fitted(std::string_view text, std::size_t columns, std::size_t indent);

enum class Color { none, red, green, yellow, blue, magenta, cyan, dim, bold };
/// `text` in a colour; as it is with `none`.
std::string colored(std::string_view text, Color color);

/// Standard output: how wide it is, and whether it takes colours (a terminal that is not dumb, without NO_COLOR).
struct Screen {
  std::size_t columns = 0;  // 0: no terminal, lines may be long
  bool color = false;
};
Screen stdout_screen();

}  // namespace kf::report
