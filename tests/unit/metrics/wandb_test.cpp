#include "metrics/wandb/wandb.h"

#include <catch2/catch.hpp>

#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "metrics/wandb/record_log.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

#include "tracked_run.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::TrackedRun;

namespace {

fs::path file_of(const fs::path& dir) {
  const std::vector<fs::path> found = glob(dir, "wandb/offline-run-*/run-20261128-2147-5f3a91c2.wandb");
  REQUIRE(found.size() == 1);
  return found.front();
}

std::string item(const wandb::History& row, const std::string& name) {
  for (const auto& [key, json] : row.items) {
    if (key == name) {
      return json;
    }
  }
  return "";
}

std::vector<wandb::History> rows_of(const fs::path& dir) {
  const wandb::LogContent content = wandb::read_log(read_file(file_of(dir)));
  CHECK(content.whole);
  std::vector<wandb::History> out;
  for (const std::string& record : content.records) {
    if (std::optional<wandb::History> row = wandb::history_of(record)) {
      out.push_back(std::move(*row));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("wandb: records of any length are framed and read back, wherever a block ends", "[trackers]") {
  std::string file = wandb::log_header();
  std::vector<std::string> records;
  for (const std::size_t length :
       std::vector<std::size_t>{0, 1, 32747, 0, 5, 32754, 32755, 32761, 32762, 70000, 32768 - 7 - 3, 100000, 1, 65522, 65521}) {
    records.emplace_back(length, static_cast<char>('a' + records.size()));
    file += wandb::framed(records.back(), file.size());
  }
  const wandb::LogContent all = wandb::read_log(file);
  CHECK(all.whole);
  CHECK(all.records == records);
  for (std::size_t length = 0; length < file.size(); length += 997) {  // a killed writer leaves any beginning
    const wandb::LogContent some = wandb::read_log(std::string_view(file).substr(0, length));
    CHECK(std::equal(some.records.begin(), some.records.end(), records.begin()));
  }
  file[file.size() / 2] ^= 1;
  const wandb::LogContent damaged = wandb::read_log(file);
  CHECK_FALSE(damaged.whole);
  CHECK(damaged.records.size() < records.size());
  CHECK_FALSE(wandb::read_log("something else").whole);
}

TEST_CASE("wandb: a step is one row, whatever became of the run meanwhile", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  test::tell_a_hard_life<WandbSink>(run);
  const std::vector<wandb::History> rows = rows_of(dir.path());
  REQUIRE(rows.size() == 8);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    CHECK(rows[i].step == step);
    CHECK(item(rows[i], "_step") == std::to_string(step));
    CHECK(item(rows[i], "loss") == std::to_string(static_cast<int>(test::loss_of_hard_life(step))));
    CHECK(item(rows[i], "samples/1") == (step % 2 == 0 ? "\"# step\\n" + std::to_string(step) + "\"" : ""));
  }
  CHECK(item(rows[7], "eval/loss") == "0.5");
  CHECK_THAT(item(rows[7], "weights/w"), Contains("\"values\": [5, 0, 0, 0, 0, 0, 0, 0, 0, 7]"));
}

TEST_CASE("wandb: a mark that the run was synchronized goes when it goes on, and a torn end with a warning", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  test::tell_a_hard_life<WandbSink>(run);
  const fs::path file = file_of(dir.path());
  const fs::path mark = fs::path(file) += ".synced";
  write_file_atomic(mark, "");
  write_file_atomic(file, read_file(file) + "\x01\x02\x03");
  const std::size_t warnings = log::count(log::Level::warn);
  WandbSink sink;
  run.begin(sink, 8);
  CHECK(log::count(log::Level::warn) == warnings + 1);
  CHECK_FALSE(fs::exists(mark));
  test::tell_steps(sink, 9, 9, 4);
  CHECK(rows_of(dir.path()).size() == 9);
}

TEST_CASE("wandb: what a full disk does not take waits, is kept by a checkpoint, and is written once", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  config::Node saved;
  {
    WandbSink sink;
    run.begin(sink, 0);
    test::tell_steps(sink, 1, 2, 1);
    CHECK(sink.fault().empty());
    std::optional<test::FileSizeLimit> full(fs::file_size(file_of(dir.path())) + 10);
    test::tell_steps(sink, 3, 3, 1);
    sink.row(test::tracked_row(4, 1));  // a save comes within its step
    saved = sink.state();
    CHECK_THAT(sink.fault(), Contains("File too large"));
    CHECK(saved.array()->size() == 2);
    sink.step_over(4);
    full.reset();
    test::tell_steps(sink, 5, 5, 1);
    CHECK(sink.fault().empty());
    CHECK(rows_of(dir.path()).size() == 5);
  }
  WandbSink sink;
  sink.load(saved);
  run.begin(sink, 4);
  CHECK(rows_of(dir.path()).size() == 4);
  test::tell_steps(sink, 5, 5, 1);
  CHECK(rows_of(dir.path()).size() == 5);
}

TEST_CASE("wandb: a run begins and goes on where the disk is full, and all is written when it is not", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  for (const std::int64_t completed : {0, 2}) {
    std::optional<test::FileSizeLimit> full(0);
    WandbSink sink;
    run.begin(sink, completed);
    test::tell_steps(sink, completed + 1, completed + 2, 1);
    sink.before_save();
    sink.saved(completed + 2, "step");
    const std::string fault = sink.fault();
    full.reset();
    CHECK_THAT(fault, Contains("File too large"));
    test::tell_steps(sink, completed + 3, completed + 3, 1);
    CHECK(sink.fault().empty());
    const std::vector<wandb::History> rows = rows_of(dir.path());
    REQUIRE(rows.size() == static_cast<std::size_t>(completed) + 3);
    CHECK(rows.back().step == completed + 3);
  }
}

TEST_CASE("wandb: a run that goes back while the disk is full keeps what it does again", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  WandbSink sink;
  run.begin(sink, 0);
  test::tell_steps(sink, 1, 3, 1);
  std::optional<test::FileSizeLimit> full(0);
  sink.rewind(1);
  test::tell_steps(sink, 2, 3, 2);
  full.reset();
  test::tell_steps(sink, 4, 4, 2);
  const std::vector<wandb::History> rows = rows_of(dir.path());
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].step == static_cast<std::int64_t>(i) + 1);
    CHECK(item(rows[i], "loss") == (i == 0 ? "1" : "2"));
  }
}
