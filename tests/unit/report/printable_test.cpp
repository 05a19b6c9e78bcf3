#include "report/terminal/printable.h"

#include <catch2/catch.hpp>
#include <string>

#include "core/wrap.h"
#include "report/terminal/table.h"

using kf::report::fitted;
using kf::report::printable;
using kf::report::shortened;
using kf::report::table;
using kf::report::TableColumn;

TEST_CASE("report: names cannot steer the terminal", "[report]") {
  CHECK(printable("runs/a b") == "runs/a b");
  CHECK(printable("größer → ✓") == "größer → ✓");
  CHECK(printable("a\x1b[2Jb\n\t") == "a\\x1b[2Jb\\x0a\\x09");
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");           // the one character that is an escape sequence's beginning, too
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // right to left from here on
  CHECK(printable("").empty());
}

TEST_CASE("report: long texts are cut at characters", "[report]") {
  CHECK(shortened("größer", 6) == "größer");
  CHECK(shortened("größer", 4) == "grö…");
  CHECK(shortened("größer", 1) == "…");
  CHECK(shortened("größer", 0).empty());
}

TEST_CASE("report: texts are broken at blanks, and where there are none", "[report]") {
  CHECK(fitted("one two three", 8, 2) == "one two\n  three");
  CHECK(fitted("größergrößer x", 8, 2) == "größergr\n  ößer\n  x");
  CHECK(fitted("one two", 0, 2) == "one two");
}

TEST_CASE("report: a table fits its screen", "[report]") {
  const std::vector<TableColumn> columns{{"run", false, 0, 6}, {"state"}, {"loss", true}, {"eval", true, 1}, {"why", false, 2, 5}};
  const std::vector<std::vector<kf::report::Cell>> rows{{{"a-long-name-of-a-run"}, {"failed"}, {"1.5"}, {"2.5"}, {"it was out of memory"}},
                                                        {{"b"}, {"ok"}, {"10.25"}, {"-"}, {""}}};
  CHECK(table(columns, rows, {}) ==
        "run                   state    loss  eval  why\n"
        "a-long-name-of-a-run  failed    1.5   2.5  it was out of memory\n"
        "b                     ok      10.25     -\n");
  for (std::size_t width = 24; width < 70; ++width) {
    const std::string text = table(columns, rows, {width, false});
    std::size_t from = 0;
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', from)) {
      CHECK(kf::columns_of(text.substr(from, at - from)) <= width);
      from = at + 1;
    }
  }
  CHECK(table(columns, rows, {25, false}) ==
        "run         state    loss\n"
        "a-long-na…  failed    1.5\n"
        "b           ok      10.25\n");
  CHECK(table({{"a"}}, {{{"x", kf::report::Color::red}}}, {80, true}) == "\x1b[1ma\x1b[0m\n\x1b[31mx\x1b[0m\n");
}
