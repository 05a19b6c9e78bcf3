#pragma once
// Lines that fit a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace kf {

/// `text` broken at blanks into lines of at most `columns` characters, those after the first indented by `indent` blanks. A word that is
/// longer stays whole; the blanks at the start of `text` stay. No newline at the end. `text` has no newlines of its own.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

/// A page of help, its lines broken at 80 columns: what goes on stands below the words behind the line's last gap of two blanks, as the
/// description of an option, or below the line's own start.
std::string folded(std::string_view page);

/// How many characters a terminal shows for UTF-8 `text`: continuation bytes take no column.
std::size_t columns_of(std::string_view text);

/// Columns of the terminal behind a file descriptor, 80 where it does not tell; 0 where it is none.
std::size_t terminal_columns(int descriptor);

}  // namespace kf
