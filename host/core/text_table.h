#pragma once
// Rows in columns, for people.

#include <string>
#include <vector>

namespace kf {

/// The cells under each other, two blanks between columns; columns of which `right` has the number end alike. Nothing follows the last cell
/// of a row. Each line ends.
std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right = {});

}  // namespace kf
