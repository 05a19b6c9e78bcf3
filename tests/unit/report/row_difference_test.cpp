#include "report/read/row_difference.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "support/temp_dir.h"

using kf::report::compare_rows;
using kf::report::RowComparison;
using kf::report::RowFile;
using kf::test::TempDir;

namespace {

RowComparison compared(const std::string& a, const std::string& b, std::int64_t until = 100) {
  const TempDir dir;
  RowFile left(dir.write("a", a)), right(dir.write("b", b));
  left.read();
  right.read();
  return compare_rows(left, right, {"loss", "grad_norm", "eval.loss"}, until);
}

}  // namespace

TEST_CASE("report: rows are compared bit by bit where both have the step", "[report]") {
  const std::string a =
      "{\"step\": 10, \"loss\": 0.1, \"grad_norm\": 1.0}\n"
      "{\"step\": 10, \"eval\": {\"loss\": 2.0}}\n"
      "{\"step\": 20, \"loss\": null, \"grad_norm\": null, \"not_finite\": {\"loss\": \"nan\"}}\n"
      "{\"step\": 30, \"loss\": 0.3, \"grad_norm\": 3.0}\n";
  CHECK(!compared(a, a).first);
  CHECK(compared(a, a).rows == 4);
  CHECK(compared(a, a).last_step == 30);
  CHECK(compared(a, a).compared == std::vector<std::string>{"loss", "grad_norm", "eval.loss"});
  CHECK(compared(a, a, 20).rows == 3);
  CHECK(compared(a, "").rows == 0);
  CHECK(compared(a, "{\"step\": 15, \"loss\": 0.1}\n").rows == 0);

  const RowComparison last_bit = compared(a, "{\"step\": 10, \"loss\": 0.10000000000000002, \"grad_norm\": 7.0}\n");
  REQUIRE(last_bit.first);
  CHECK(last_bit.first->metric == "loss");
  CHECK(last_bit.first->step == 10);
  CHECK(last_bit.first->b == 0.10000000000000002);
  const RowComparison earlier = compared(a, "{\"step\": 10, \"loss\": 0.1, \"grad_norm\": 1.5}\n{\"step\": 30, \"loss\": 9}\n");
  REQUIRE(earlier.first);
  CHECK(earlier.first->metric == "grad_norm");
  CHECK(compared("{\"step\": 1, \"loss\": 0.0}\n", "{\"step\": 1, \"loss\": -0.0}\n").first);
  CHECK(compared("{\"step\": 1, \"loss\": null, \"not_finite\": {\"loss\": \"nan\"}}\n", "{\"step\": 1, \"loss\": null}\n").first);
}
