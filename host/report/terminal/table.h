#pragma once
// Rows in columns that fit a terminal.

#include <cstddef>
#include <string>
#include <vector>

#include "report/terminal/printable.h"

namespace kf::report {

struct TableColumn {
  std::string title;
  bool right = false;     // numbers end alike
  int rank = 0;           // where the terminal is too narrow, columns of the highest rank go first; those of rank 0 stay
  std::size_t least = 0;  // > 0: it is made as narrow as that before another column goes
};

struct Cell {
  std::string text;
  Color color = Color::none;
};

/// A line of titles and a line a row, two blanks between columns, nothing behind the last cell. No line is wider than the screen where it
/// has columns, unless what stays is; colours only where it shows them. Cells are printable text (printable.h).
std::string table(std::vector<TableColumn> columns, std::vector<std::vector<Cell>> rows, const Screen& screen);

/// How wide the widest line of that table is where nothing is left out.
std::size_t table_columns(const std::vector<TableColumn>& columns, const std::vector<std::vector<Cell>>& rows);

}  // namespace kf::report
