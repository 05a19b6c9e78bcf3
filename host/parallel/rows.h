#pragma once
// How rows (entries of dim 0) are shared out over ranks.

#include <cstdint>
#include <vector>

namespace kf {

/// THE rule for parts that nobody gave sizes for: as even as can be, the first `length % parts` parts have one row more. 7 over 3: 3, 2, 2;
/// 2 over 3: 1, 1, 0.
std::vector<std::int64_t> even_rows(std::int64_t length, std::int64_t parts);

/// Where each of these parts begins, and where the last one ends: one entry more.
std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& rows);

/// What a rank of a group sends to each rank, and gets from each, in rows.
struct Splits {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
};

}  // namespace kf
