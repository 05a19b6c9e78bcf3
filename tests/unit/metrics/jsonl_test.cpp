#include "metrics/jsonl.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <optional>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

#include "begin_at.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::begin_at;

namespace {

StepRow row_of(std::int64_t step, double loss = 1) {
  StepRow row;
  row.step = step;
  row.loss = loss;
  return row;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines = split(read_file(path), '\n');
  REQUIRE(lines.back().empty());
  lines.pop_back();
  return lines;
}

std::string steps_of(const fs::path& path) {
  std::vector<std::string> steps;
  for (const std::string& line : lines_of(path)) {
    const config::Node row = config::parse_json(line, "row");
    steps.push_back((row.table()->find("eval") != nullptr ? "e" : "") +
                    std::to_string(std::get<std::int64_t>(row.table()->find("step")->value)));
  }
  return join(steps, " ");
}

}  // namespace

TEST_CASE("jsonl: rows that waited are kept by a checkpoint, and written once by the run that goes on from it", "[metrics]") {
  const test::TempDir dir;
  const fs::path path = dir / "metrics.jsonl";
  config::Node saved;
  {
    JsonlSink sink(path);
    begin_at(sink, 0);
    sink.row(row_of(1));
    CHECK(sink.fault().empty());
    CHECK(sink.state().is_null());
    std::optional<test::FileSizeLimit> full(fs::file_size(path) + 20);
    sink.row(row_of(2));
    sink.row(row_of(3));
    saved = sink.state();
    const std::string fault = sink.fault();
    const std::string meanwhile = steps_of(path);
    full.reset();
    CHECK_THAT(fault, Contains("File too large"));
    CHECK(meanwhile == "1");
  }
  const bool written = GENERATE(false, true);
  if (written) {
    JsonlSink sink(path);
    begin_at(sink, 1);
    sink.row(row_of(2));
    sink.row(row_of(3));
    sink.row(row_of(4));
  }
  JsonlSink sink(path);
  sink.load(saved);
  begin_at(sink, 3);
  CHECK(sink.fault().empty());
  sink.row(row_of(4));
  CHECK(steps_of(path) == "1 2 3 4");
}

TEST_CASE("jsonl: a row has the documented keys in full precision", "[metrics]") {
  const test::TempDir dir;
  JsonlSink sink(dir / "metrics.jsonl");
  begin_at(sink, 0);
  StepRow row;
  row.step = 10;
  row.loss = 1.0 / 3;
  row.ce = 0.25;
  row.z_loss = 1e-9;
  row.grad_norm = std::nan("");
  row.lr = 9e-5;
  row.tokens = 163840;
  row.tokens_per_sec = 22400.5;
  row.mfu = 0.63;
  row.memory_bytes = 812000000;
  row.seconds = 7;
  row.extra = {{"my.value", 4}, {"my.value", HUGE_VAL}};
  sink.row(row);
  sink.eval({.step = 20, .loss = 2.5, .perplexity = std::exp(2.5), .tokens = 99});
  const auto lines = lines_of(dir / "metrics.jsonl");  // flushed: the sink still exists
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        R"({"step": 10, "loss": 0.3333333333333333, "grad_norm": null, "lr": 9e-05, "tokens": 163840, "tokens_per_sec": 22400.5, )"
        R"("mfu": 0.63, "memory_bytes": 812000000, "seconds": 7.0, "time": 0.0, "skipped": 0, "ce": 0.25, )"
        R"("z_loss": 1e-09, "aux_loss": 0.0, "my.value": null, "not_finite": {"grad_norm": "nan", "my.value": "inf"}})");
  CHECK(lines[1] == R"({"step": 20, "eval": {"loss": 2.5, "perplexity": 12.182493960703473, "tokens": 99}})");
}

TEST_CASE("jsonl: a mean over nothing is null, and reads back as none", "[metrics]") {
  const test::TempDir dir;
  {
    JsonlSink sink(dir / "metrics.jsonl");
    begin_at(sink, 0);
    StepRow row = row_of(7);
    row.has_loss = false;
    row.skipped = 3;
    sink.row(row);
    sink.eval({.step = 7, .loss = std::nan(""), .perplexity = std::nan(""), .tokens = 0});
  }
  for (const char* words : {"\"loss\": null", "\"ce\": null", "\"grad_norm\": null", "\"skipped\": 3"}) {
    CHECK_THAT(lines_of(dir / "metrics.jsonl")[0], Contains(words));
  }
  CHECK(lines_of(dir / "metrics.jsonl")[1] == R"({"step": 7, "eval": {"loss": null, "perplexity": null, "tokens": 0}})");
  const auto rows = read_rows(dir / "metrics.jsonl");
  REQUIRE(rows.size() == 2);
  CHECK_FALSE(std::get<StepRow>(rows[0]).has_loss);
  CHECK(std::get<StepRow>(rows[0]).skipped == 3);
  CHECK_FALSE(std::get<EvalResult>(rows[1]).has_loss());
}

TEST_CASE("jsonl: a hook cannot replace a key of the row", "[metrics]") {
  const test::TempDir dir;
  JsonlSink sink(dir / "metrics.jsonl");
  begin_at(sink, 0);
  for (const char* name : {"loss", "step", "eval"}) {
    StepRow row = row_of(1);
    row.extra = {{name, 1}};
    CHECK_THROWS_WITH(sink.row(row), Contains(std::string("a hook logs '") + name + "'"));
  }
  CHECK(read_file(dir / "metrics.jsonl").empty());
}

TEST_CASE("jsonl: after a resume each step has one row, from the resumed run", "[metrics]") {
  const test::TempDir dir;
  const fs::path path = dir / "metrics.jsonl";
  {
    JsonlSink sink(path);
    begin_at(sink, 0);
    for (std::int64_t step = 1; step <= 12; ++step) {
      sink.row(row_of(step, 1));
      if (step % 4 == 0) {
        sink.eval({.step = step, .loss = 1, .perplexity = 1, .tokens = 1});
      }
    }
  }
  {
    JsonlSink sink(path);
    begin_at(sink, 8);
    CHECK(steps_of(path) == "1 2 3 4 e4 5 6 7 8 e8");
    for (std::int64_t step = 9; step <= 16; ++step) {
      sink.row(row_of(step, 2));
    }
  }
  CHECK(steps_of(path) == "1 2 3 4 e4 5 6 7 8 e8 9 10 11 12 13 14 15 16");
  CHECK_THAT(lines_of(path)[10], Contains("\"loss\": 2.0"));
  JsonlSink finished(path);
  begin_at(finished, 16);
  CHECK(lines_of(path).size() == 18);
  JsonlSink from_the_start(path);
  begin_at(from_the_start, 0);
  CHECK(lines_of(path).empty());
}

TEST_CASE("jsonl: a half-written last row and damaged lines are dropped with a log line", "[metrics]") {
  const test::TempDir dir;
  const std::string good = "{\"step\": 1, \"loss\": 2.0}\n{\"step\": 2, \"loss\": 2.0}\n";
  for (const std::string bad : {"{\"step\": 3, \"lo", "{\"step\": 2, \"loss\": 2.0}", "\n", "garbage\n", "[1]\n", "{\"loss\": 1}\n"}) {
    CAPTURE(bad);
    const fs::path path = dir.write("metrics.jsonl", good + bad);
    const std::size_t warnings = log::count(log::Level::warn);
    JsonlSink sink(path);
    begin_at(sink, 5);
    CHECK(read_file(path) == good);
    CHECK(log::count(log::Level::warn) == warnings + 1);
  }
}

TEST_CASE("jsonl: what a resume keeps can be read at the end of the run", "[metrics]") {
  const test::TempDir temp;
  const fs::path path = temp / "metrics.jsonl";
  {
    JsonlSink sink(path);
    begin_at(sink, 0);
    sink.row(row_of(1));
  }
  std::string content = read_file(path);
  for (const char* line : {R"({"step": 1, "lr": {}})", R"({"step": 1, "loss": [1]})", R"({"step": 1, "loss": true})",
                           R"({"step": 1, "loss": "high"})", R"({"step": 1, "eval": {"loss": {}}})"}) {
    content += std::string(line) + "\n";
  }
  write_file_atomic(path, content);
  CHECK_THROWS_AS(read_rows(path), Error);
  const std::size_t warnings = log::count(log::Level::warn);
  {
    JsonlSink sink(path);
    begin_at(sink, 1);
    sink.row(row_of(2));
  }
  CHECK(log::count(log::Level::warn) == warnings + 5);
  CHECK(read_rows(path).size() == 2);
}

TEST_CASE("jsonl: a file that cannot be written is an error", "[metrics]") {
  const test::TempDir dir;
  JsonlSink sink(dir / "no" / "metrics.jsonl");
  CHECK_THROWS_WITH(begin_at(sink, 0), Contains("cannot write"));
}

TEST_CASE("jsonl: a run that goes back while the disk is full keeps the rows of what it does again", "[metrics]") {
  const test::TempDir dir;
  const fs::path path = dir / "metrics.jsonl";
  JsonlSink sink(path);
  begin_at(sink, 0);
  for (std::int64_t step = 1; step <= 3; ++step) {
    sink.row(row_of(step));
  }
  std::optional<test::FileSizeLimit> full(0);
  sink.row(row_of(4));
  sink.rewind(1);
  sink.row(row_of(2, 7));
  sink.row(row_of(3, 7));
  full.reset();
  sink.row(row_of(4, 7));
  CHECK(steps_of(path) == "1 2 3 4");
  CHECK_THAT(lines_of(path).at(1), Contains("\"loss\": 7"));
}
