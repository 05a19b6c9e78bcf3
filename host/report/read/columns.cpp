#include "report/read/columns.h"

#include <algorithm>

namespace kf::report {

const Column* Columns::find(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [name](const Column& column) { return column.name == name; });
  return found != columns.end() ? &*found : nullptr;
}

}  // namespace kf::report
