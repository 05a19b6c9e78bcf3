#include "parallel/rows.h"

namespace kf {

std::vector<std::int64_t> even_rows(std::int64_t length, std::int64_t parts) {
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    rows.push_back(length / parts + (part < length % parts ? 1 : 0));
  }
  return rows;
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t count : rows) {
    offsets.push_back(offsets.back() + count);
  }
  return offsets;
}

}  // namespace kf
