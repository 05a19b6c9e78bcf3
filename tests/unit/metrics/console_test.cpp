#include "metrics/console.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <sstream>
#include <thread>

#include "core/log.h"
#include "core/text.h"

#include "begin_at.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::begin_at;

namespace {

/// A console on a string with a clock that the test moves.
struct Fixture {
  explicit Fixture(bool bar = false, int columns = 120)
      : sink(out, ConsoleOptions{.bar = bar, .color = false, .columns = [columns] { return columns; }, .clock = [this] { return now; }}) {
    begin_at(sink, 0, 400);
  }
  std::string taken() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  double now = 0;
  std::ostringstream out;
  ConsoleSink sink;
};

StepRow row_of(std::int64_t step, double loss, double lr, double grad_norm, double tokens_per_sec, double mfu) {
  StepRow row;
  row.step = step;
  row.loss = row.ce = loss;
  row.lr = lr;
  row.grad_norm = grad_norm;
  row.tokens_per_sec = tokens_per_sec;
  row.mfu = mfu;
  return row;
}

/// What a terminal shows after `text`: carriage returns and erasures carried out, one string a line.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines{""};
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& line = lines.back();
    if (text.compare(i, 3, "\x1b[K") == 0) {
      line.resize(std::min(column, line.size()));
      i += 2;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = text[i];
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("console: a run reads as documented", "[metrics]") {
  Fixture f;
  f.now = 0.7569;
  f.sink.row(row_of(1, 6.2381, 0, 2.104, 21900, 0.61));
  f.sink.step_over(1);
  f.now = 100;
  f.sink.row(row_of(100, 2.4038, 9.9e-4, 0.551, 22300, 0.62));
  f.sink.eval({.step = 100, .loss = 2.391, .perplexity = 10.9, .tokens = 5, .bits_per_byte = 3.4495});
  f.sink.saved(100, "runs/first-run/checkpoints/step_100");
  f.sink.step_over(100);
  f.sink.end({});
  CHECK(f.taken() ==
        " step     loss    ppl      lr     grad   tok/s    mfu   eta\n"
        "    1   6.2381  511.9  0        2.104   21.9k   61 %   5m02\n"
        "  100   2.4038   11.1  9.9e-04  0.551   22.3k   62 %   5m00   val 2.391 (3.45 bits/byte)  saved step_100\n");
}

TEST_CASE("console: a row waits for its notes until its step is over", "[metrics]") {
  Fixture f;
  f.sink.row(row_of(1, 1, 0, 1, 1, 0));
  CHECK(f.taken().empty());
  f.sink.step_over(1);
  CHECK_THAT(f.taken(), Contains("\n    1   1.0000"));
  f.sink.row(row_of(2, 1, 0, 1, 1, 0));
  f.sink.row(row_of(3, 1, 0, 1, 1, 0));  // the next row pushes the held one out
  CHECK_THAT(f.taken(), Contains("    2   1.0000"));
  f.sink.end({});
  CHECK_THAT(f.taken(), Contains("    3   1.0000"));
  f.sink.end({});
  CHECK(f.taken().empty());
}

TEST_CASE("console: notes of a step without a row stand in their column", "[metrics]") {
  Fixture f;
  f.sink.eval({.step = 15, .loss = 2, .perplexity = 7.4, .tokens = 5, .bits_per_byte = 2.8854, .sets = {{.loss = 1.5, .name = "code"}}});
  f.sink.step_over(15);
  CHECK(screen(f.taken())[1] == "   15" + std::string(57, ' ') + "val 2.000 (2.89 bits/byte)  code 1.500");
}

TEST_CASE("console: on a terminal no line is wider than it", "[metrics]") {
  for (const int columns : {200, 80, 60, 52}) {
    CAPTURE(columns);
    Fixture f(false, columns);
    f.sink.row(row_of(100, 2.4038, 9.9e-4, 0.551, 22300, 0.62));
    f.sink.eval({.step = 100, .loss = 2.391, .perplexity = 10.9, .tokens = 5, .bits_per_byte = 3.4495});
    f.sink.saved(100, "runs/first-run/checkpoints/step_100");
    f.sink.step_over(100);
    f.sink.eval({.step = 115, .loss = 2, .perplexity = 7.4, .tokens = 5, .bits_per_byte = 2.8854, .sets = {{.loss = 1.5, .name = "code"}}});
    f.sink.step_over(115);
    f.sink.end({});
    const std::string text = f.taken();
    for (const std::string& line : screen(text)) {
      CHECK(line.size() <= static_cast<std::size_t>(columns));
    }
    for (const char* word : {"val 2.391 (3.45 bits/byte)", "saved step_100", "  115", "code 1.500"}) {
      CHECK_THAT(text, Contains(word));  // folded, not cut
    }
  }
  Fixture f(false, 80);
  f.sink.row(row_of(100, 2.4038, 9.9e-4, 0.551, 22300, 0.62));
  f.sink.eval({.step = 100, .loss = 2.391, .perplexity = 10.9, .tokens = 5, .bits_per_byte = 3.4495});
  f.sink.end({});
  CHECK(screen(f.taken())[2] == "      val 2.391 (3.45 bits/byte)");
}

TEST_CASE("console: long runs get a wider column of steps", "[metrics]") {
  std::ostringstream out;
  ConsoleSink sink(out, ConsoleOptions{.bar = false, .color = false, .columns = {}, .clock = [] { return 1.0; }});
  begin_at(sink, 0, 1000000);
  sink.row(row_of(1, 1, 0, 1, 1, 0));
  sink.end({});
  const auto lines = screen(out.str());
  CHECK(lines[0].find("step") == 3);
  CHECK(lines[1].starts_with("      1   1.0000"));
}

TEST_CASE("console: numbers that do not fit or do not exist keep the columns", "[metrics]") {
  Fixture f;
  StepRow row = row_of(12345, -std::nan(""), 1e-12, 123456, 1.234e6, 0);
  f.sink.row(row);
  row = row_of(12346, HUGE_VAL, 3, -0.0, 0.5, 1.05);
  f.sink.row(row);
  row = row_of(12347, 19, 3, 0, 999.4, 0.004);
  f.sink.row(row);
  f.sink.row(row_of(12348, 10.6052, 1e-2, 152.25, 999.4, 0.004));  // fresh weights over 40,000 words
  f.sink.row(row_of(12349, 12345.678, 1e-2, 1e7, 999.4, 0.004));
  f.sink.end({});
  const auto lines = screen(f.taken());
  CHECK(lines[1] == "12345      nan    nan  1.0e-12 123456   1.23M      -      -");
  CHECK(lines[2] == "12346      inf  5e+08  3.0e+00 -0.000    0.50  105 %      -");
  CHECK(lines[3] == "12347  19.0000  2e+08  3.0e+00  0.000     999    0 %      -");
  CHECK(lines[4] == "12348  10.6052  40344  1.0e-02 152.25     999    0 %      -");
  CHECK(lines[5] == "12349 12345.68  5e+08  1.0e-02  1e+07     999    0 %      -");
}

TEST_CASE("console: a resumed run counts its own steps for the time that is left", "[metrics]") {
  double now = 0;
  std::ostringstream out;
  ConsoleSink sink(out, ConsoleOptions{.bar = false, .color = false, .columns = {}, .clock = [&] { return now; }});
  begin_at(sink, 100, 120);
  now = 10;
  sink.row(row_of(110, 1, 0, 1, 1, 0));
  sink.eval({.step = 110, .loss = 2, .perplexity = 7.4, .tokens = 5});
  sink.end({});
  CHECK_THAT(out.str(), Contains("    10s   val 2.000\n"));
}

TEST_CASE("console: short counts have three digits", "[metrics]") {
  CHECK(short_count(0) == "0.00");
  CHECK(short_count(9.994) == "9.99");
  CHECK(short_count(9.996) == "10.0");
  CHECK(short_count(812) == "812");
  CHECK(short_count(999.6) == "1.00k");
  CHECK(short_count(22400) == "22.4k");
  CHECK(short_count(99960) == "100k");
  CHECK(short_count(1.314e6) == "1.31M");
}

TEST_CASE("console: header lines align, with the folder of the run at the right", "[metrics]") {
  CHECK(header_line("model", "transformer, 3 parameters") == "model   transformer, 3 parameters");
  CHECK(header_line("job", "examples/first-run/job.toml, 2 overrides", "runs/first-run") ==
        "job     examples/first-run/job.toml, 2 overrides" + std::string(18, ' ') + "runs/first-run");  // 80 columns
  CHECK(header_line("job", std::string(90, 'x'), "r") == "job     " + std::string(90, 'x') + "  r");
}

TEST_CASE("console: the bar is redrawn in place below the rows, at most ten times a second", "[metrics]") {
  Fixture f(true);
  f.now = 137;
  f.sink.row(row_of(137, 2.118, 1e-3, 1, 22400, 0.6));
  f.sink.step_over(137);
  const std::string first = f.taken();
  auto lines = screen(first);
  REQUIRE(lines.size() == 3);
  CHECK(lines[2] == "[============>                      ] 137/400  loss 2.118  22.4k tok/s  eta 4m23");
  f.now += 0.05;
  f.sink.step_over(138);
  CHECK(f.taken().empty());
  f.now += 0.95;
  f.sink.step_over(138);
  lines = screen(first + f.taken());
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[2], Contains("] 138/400"));
  f.sink.end({});
  CHECK(screen(first + f.taken()).back().empty());
}

TEST_CASE("console: a narrow terminal gets a shorter bar, or none", "[metrics]") {
  for (const int columns : {80, 60, 40, 10, 1}) {
    Fixture f(true, columns);
    f.now = 137;
    f.sink.row(row_of(137, 2.118, 1e-3, 1, 22400, 0.6));
    f.sink.step_over(137);
    CHECK(screen(f.taken()).back().size() <= static_cast<std::size_t>(columns - 1));
  }
}

TEST_CASE("console: the bar steps aside for log lines and rows", "[metrics]") {
  Fixture f(true);
  f.now = 10;
  f.sink.step_over(10);
  CHECK_THAT(screen(f.taken()).back(), Contains("] 10/400  eta 6m30"));
  log::info("a line between two drawings");
  const std::string around = f.taken();
  CHECK(around.starts_with("\r\x1b[K"));  // taken away, and drawn again
  CHECK_THAT(screen(around).back(), Contains("] 10/400"));
  f.sink.row(row_of(11, 1, 0, 1, 1, 0));
  f.sink.step_over(11);
  const auto lines = screen(f.taken());
  REQUIRE(lines.size() == 3);
  CHECK_THAT(lines[1], Contains("   11   1.0000"));
  CHECK_THAT(lines[2], Contains("] 11/400"));
}

TEST_CASE("console: log lines from another thread do not tear the bar", "[metrics]") {
  Fixture f(true);
  std::thread other([] {
    for (int i = 0; i < 20; ++i) {
      log::info("line {}", i);
    }
  });
  for (std::int64_t step = 1; step <= 200; ++step) {
    f.now += 0.2;
    f.sink.step_over(step);
  }
  other.join();
  f.sink.end({});
  CHECK(screen(f.taken()).size() == 1);
}

TEST_CASE("console: without a terminal there is no escape sequence", "[metrics]") {
  Fixture f;
  f.sink.row(row_of(1, 1, 0, 1, 1, 0));
  f.sink.step_over(1);
  f.sink.end({});
  CHECK(f.taken().find_first_of("\r\x1b") == std::string::npos);
}
