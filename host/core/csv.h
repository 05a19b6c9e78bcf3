#pragma once
// Lines of comma-separated values as RFC 4180 has them: cells with a comma, a quote or a line break stand in quotes, quotes inside twice.

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// One line, with its "\n".
std::string csv_line(const std::vector<std::string>& cells);

/// The complete lines of a text, cell by cell. A last one without its line end, as a killed writer leaves it, is left out.
std::vector<std::vector<std::string>> csv_lines(std::string_view text);

}  // namespace kf
