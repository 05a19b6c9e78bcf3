#include "core/csv.h"

#include <catch2/catch.hpp>

using namespace kf;

TEST_CASE("csv: cells with commas, quotes and line breaks come back as they were", "[core]") {
  const std::vector<std::vector<std::string>> lines{{"step", "a,b", "say \"x\""}, {"1", "", "two\nlines\r\n"}, {"\"", "\"\"", ","}, {""}};
  std::string text;
  for (const auto& line : lines) {
    text += csv_line(line);
  }
  CHECK(text.starts_with("step,\"a,b\",\"say \"\"x\"\"\"\n1,,\"two\nlines\r\n\"\n"));
  CHECK(csv_lines(text) == lines);
}

TEST_CASE("csv: a line that was not written to its end is none; other programs end lines with CR LF", "[core]") {
  CHECK(csv_lines("a,b\r\n1,2\r\n3,\"4\n") == std::vector<std::vector<std::string>>{{"a", "b"}, {"1", "2"}});
  CHECK(csv_lines("").empty());
}
