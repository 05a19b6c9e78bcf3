#include "parallel/rows.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace kf;

TEST_CASE("parallel: parts without sizes are as even as can be, the first ones longer", "[parallel]") {
  CHECK(even_rows(7, 3) == std::vector<std::int64_t>{3, 2, 2});
  CHECK(even_rows(2, 3) == std::vector<std::int64_t>{1, 1, 0});
  CHECK(even_rows(0, 2) == std::vector<std::int64_t>{0, 0});
  for (std::int64_t length = 0; length < 40; ++length) {
    for (std::int64_t parts = 1; parts < 12; ++parts) {
      const std::vector<std::int64_t> rows = even_rows(length, parts);
      CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == length);
      CHECK(rows.front() - rows.back() <= 1);
      CHECK(std::is_sorted(rows.rbegin(), rows.rend()));
    }
  }
  CHECK(offsets_of({3, 0, 2}) == std::vector<std::int64_t>{0, 3, 3, 5});
}
