#include "report/terminal/table.h"

#include <algorithm>
#include <numeric>

#include "core/wrap.h"

namespace kf::report {
namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> widths_of(const std::vector<TableColumn>& columns, const std::vector<std::vector<Cell>>& rows) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = columns_of(columns[i].title);
    for (const std::vector<Cell>& row : rows) {
      width = std::max(width, columns_of(row[i].text));
    }
    out.push_back(width);
  }
  return out;
}

std::size_t whole(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + kGap * (widths.empty() ? 0 : widths.size() - 1);
}

/// Makes columns narrower that may be; whether that is enough.
bool shrink(const std::vector<TableColumn>& columns, std::vector<std::size_t>& widths, std::size_t most) {
  for (std::size_t i = columns.size(); i-- > 0 && whole(widths) > most;) {
    if (columns[i].least > 0) {
      const std::size_t over = whole(widths) - most;
      const std::size_t least = std::min(widths[i], columns[i].least);
      widths[i] = std::max(least, widths[i] > over ? widths[i] - over : 0);
    }
  }
  return whole(widths) <= most;
}

/// Takes away the last column of the highest rank; false where all that are left stay.
bool drop(std::vector<TableColumn>& columns, std::vector<std::vector<Cell>>& rows) {
  const auto worst = std::max_element(columns.rbegin(), columns.rend(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (worst == columns.rend() || worst->rank == 0) {
    return false;
  }
  const auto index = columns.rend() - worst - 1;
  columns.erase(columns.begin() + index);
  for (std::vector<Cell>& row : rows) {
    row.erase(row.begin() + index);
  }
  return true;
}

std::string line_of(const std::vector<TableColumn>& columns, const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                    bool color) {
  std::string out;
  std::string gap;  // what stands before the next cell that is not empty
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string text = shortened(cells[i].text, widths[i]);
    const std::string space(widths[i] - columns_of(text), ' ');
    gap += columns[i].right ? space : "";
    if (!text.empty()) {
      out += gap + colored(text, color ? cells[i].color : Color::none);
      gap.clear();
    }
    gap += (columns[i].right ? "" : space) + std::string(kGap, ' ');
  }
  return out + '\n';
}

}  // namespace

std::string table(std::vector<TableColumn> columns, std::vector<std::vector<Cell>> rows, const Screen& screen) {
  std::vector<std::size_t> widths = widths_of(columns, rows);
  while (screen.columns > 0 && !shrink(columns, widths, screen.columns) && drop(columns, rows)) {
    widths = widths_of(columns, rows);
  }
  std::vector<Cell> titles;
  for (const TableColumn& column : columns) {
    titles.push_back({column.title, Color::bold});
  }
  std::string out = line_of(columns, titles, widths, screen.color);
  for (const std::vector<Cell>& row : rows) {
    out += line_of(columns, row, widths, screen.color);
  }
  return out;
}

std::size_t table_columns(const std::vector<TableColumn>& columns, const std::vector<std::vector<Cell>>& rows) {
  return whole(widths_of(columns, rows));
}

}  // namespace kf::report
