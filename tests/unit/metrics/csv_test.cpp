#include "metrics/csv.h"

#include <catch2/catch.hpp>

#include <map>
#include <optional>

#include "core/csv.h"
#include "core/text.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

#include "begin_at.h"

using namespace kf;
using kf::test::begin_at;

namespace {

StepRow row_of(std::int64_t step, Values extra = {}) {
  StepRow row;
  row.step = step;
  row.loss = row.ce = static_cast<double>(step) / 2;
  row.extra = std::move(extra);
  return row;
}

void log_row(CsvSink& sink, std::int64_t step, Values extra = {}) {
  sink.row(row_of(step, std::move(extra)));
  sink.step_over(step);
}

/// A column as "step=cell step=cell"; "none" without it.
std::string column(const fs::path& path, const std::string& name) {
  const std::vector<std::vector<std::string>> lines = csv_lines(read_file(path));
  const auto found = std::find(lines.at(0).begin(), lines[0].end(), name);
  if (found == lines[0].end()) {
    return "none";
  }
  std::vector<std::string> out;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    REQUIRE(lines[i].size() == lines[0].size());
    out.push_back(lines[i][0] + "=" + lines[i][static_cast<std::size_t>(found - lines[0].begin())]);
  }
  return join(out, " ");
}

}  // namespace

TEST_CASE("csv: a number that comes later has a column, and the lines before an empty cell", "[metrics]") {
  const test::TempDir dir;
  const fs::path file = dir / "metrics.csv";
  CsvSink sink(file);
  begin_at(sink, 0);
  log_row(sink, 1);
  log_row(sink, 2, {{"early", 7}});
  log_row(sink, 3, {{"late, \"quoted\"", 0.25}, {"two\nlines", 1}});
  log_row(sink, 4);
  CHECK(column(file, "step") == "1=1 2=2 3=3 4=4");
  CHECK(column(file, "loss") == "1=0.5 2=1 3=1.5 4=2");
  CHECK(column(file, "early") == "1= 2=7 3= 4=");
  CHECK(column(file, "late, \"quoted\"") == "1= 2= 3=0.25 4=");
  CHECK(column(file, "two\nlines") == "1= 2= 3=1 4=");
}

TEST_CASE("csv: evaluations stand in the line of their step, each number of each set in its column", "[metrics]") {
  const test::TempDir dir;
  const fs::path file = dir / "metrics.csv";
  CsvSink sink(file);
  begin_at(sink, 0);
  sink.eval({.step = 0, .loss = 4, .perplexity = 55, .tokens = 9});  // before the first update
  sink.step_over(0);
  log_row(sink, 1);
  sink.row(row_of(2));
  EvalResult eval{.step = 2, .loss = 3, .perplexity = 20, .tokens = 9, .ema = 2.5, .accuracy = 0.5};
  eval.sets = {{.step = 2, .loss = 2, .perplexity = 7, .tokens = 4, .name = "code"},
               {.step = 2, .loss = 4, .perplexity = 55, .tokens = 5, .name = "web"}};
  sink.eval(eval);
  sink.step_over(2);
  sink.eval({.step = 3, .loss = 2.75, .perplexity = 16, .tokens = 9});  // of a step without a row
  sink.step_over(3);
  CHECK(column(file, "eval_loss") == "0=4 1= 2=3 3=2.75");
  CHECK(column(file, "eval_ema") == "0= 1= 2=2.5 3=");
  CHECK(column(file, "eval_code_loss") == "0= 1= 2=2 3=");
  CHECK(column(file, "eval_web_tokens") == "0= 1= 2=5 3=");
  CHECK(column(file, "loss") == "0= 1=0.5 2=1 3=");
}

TEST_CASE("csv: a resumed run keeps the lines of its past and may have other numbers", "[metrics]") {
  const test::TempDir dir;
  const fs::path file = dir / "metrics.csv";
  {
    CsvSink sink(file);
    begin_at(sink, 0);
    for (std::int64_t step = 1; step <= 4; ++step) {
      log_row(sink, step, {{"old", static_cast<double>(step)}});
    }
  }
  write_file_atomic(file, read_file(file) + "5,2.5");  // killed within a line
  {
    CsvSink sink(file);
    begin_at(sink, 3);
    log_row(sink, 4, {{"new", 8}});
    sink.row(row_of(5, {{"new", 9}}));
  }  // an error ends the run within step 5: its row is kept
  CHECK(column(file, "old") == "1=1 2=2 3=3 4= 5=");
  CHECK(column(file, "new") == "1= 2= 3= 4=8 5=9");
  CsvSink sink(file);
  begin_at(sink, 5);
  sink.rewind(2);
  log_row(sink, 3);
  CHECK(column(file, "old") == "1=1 2=2 3=");
}

TEST_CASE("csv: a run that goes back while the disk is full keeps the lines of what it does again", "[metrics]") {
  const test::TempDir dir;
  const fs::path file = dir / "metrics.csv";
  CsvSink sink(file);
  begin_at(sink, 0);
  log_row(sink, 1);
  log_row(sink, 2);
  std::optional<test::FileSizeLimit> full(0);
  log_row(sink, 3);
  sink.rewind(1);
  log_row(sink, 2, {{"again", 1}});
  full.reset();
  log_row(sink, 3, {{"again", 1}});
  CHECK(column(file, "again") == "1= 2=1 3=1");
}
