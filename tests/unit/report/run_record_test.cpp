#include "report/read/run_record.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "report/read/row_file.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::report::Mark;
using kf::report::marks_of;
using kf::test::TempDir;

TEST_CASE("report: what went wrong is told from record, incidents and log", "[report]") {
  const TempDir dir;
  dir.write("run.json", R"({"id": "1", "starts": [
    {"time": "2026-11-28T21:00:00Z", "host": "a", "step": 0},
    {"time": "2026-11-28T22:00:00Z", "host": "b", "step": 20, "end": "2026-11-28T23:00:00Z", "status": "failed", "steps": 31,
     "error": "no room"},
    {"time": "2026-11-29T00:00:00Z", "host": "b", "step": 30}]})");
  dir.write("incidents/step_31/incident.json", R"({"step": 31, "why": "the loss is nan"})");
  fs::create_directories(dir / "incidents/stall_step_12");
  dir.write("log.txt",
            "2026-11-28 21:47:03.123 info step 5: phase 'a'\n"
            "2026-11-28 21:47:03.123 warning step 7: no update, a spike\n"
            "2026-11-28 21:47:03.123 warning step 7: no update, a spike again\n"
            "2026-11-28 21:47:03.123 warning step 25: rolled back to step_20 (spikes); the data since then are left out\n"
            "torn");
  const std::vector<Mark> marks = marks_of(dir.path(), {});
  std::vector<std::string> told;
  for (const Mark& mark : marks) {
    told.push_back(std::to_string(mark.step) + " " + to_word(mark.kind) + ": " + mark.text);
  }
  CHECK(told == std::vector<std::string>{"7 skipped: a spike again", "12 stalled: nothing moved for run.stall_timeout_sec",
                                         "20 restart: started again on b", "20 killed: the process that began then never said how it ended",
                                         "25 rolled back: back to step_20 (spikes); the data since then are left out",
                                         "30 restart: started again on b", "31 failed: no room", "31 not finite: the loss is nan"});
  CHECK(marks[2].time == "2026-11-28T22:00:00Z");
}

TEST_CASE("report: without a log the counter of the rows tells of skipped steps", "[report]") {
  const TempDir dir;
  kf::report::RowFile rows(
      dir.write("metrics.jsonl", "{\"step\": 10, \"skipped\": 0}\n{\"step\": 20, \"skipped\": 2}\n{\"step\": 30, \"skipped\": 2}\n"));
  rows.read();
  const std::vector<Mark> marks = marks_of(dir.path(), rows.steps());
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].step == 20);
  CHECK(marks[0].text == "2 since the row before");
}

TEST_CASE("report: the environment of a start is all that it has but its course", "[report]") {
  const TempDir dir;
  dir.write("run.json",
            R"({"starts": [{"time": "t", "torch": "2.11.0", "threads": 2, "pid": 4, "job_git": {"commit": "ab", "dirty": true}}]})");
  const kf::report::Record record = kf::report::read_record(dir.path());
  CHECK(environment_of(record.starts[0]) ==
        std::vector<std::pair<std::string, std::string>>{
            {"torch", "2.11.0"}, {"threads", "2"}, {"job_git.commit", "ab"}, {"job_git.dirty", "true"}});
  CHECK_THROWS_WITH(kf::report::read_record(dir / "nowhere"), Contains("run.json"));
}

TEST_CASE("report: samples are read as far as they are some", "[report]") {
  const TempDir dir;
  CHECK(kf::report::samples_of(dir.path()).empty());
  dir.write("artifacts/samples.json", R"([{"step": 20, "prompt": "The ", "text": "end"}, {"prompt": "x"}, 5])");
  const std::vector<kf::report::Sample> samples = kf::report::samples_of(dir.path());
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].text == "end");
  dir.write("artifacts/samples.json", "[");
  CHECK(kf::report::samples_of(dir.path()).empty());
}
