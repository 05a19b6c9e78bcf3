#include "metrics/mlflow/mlflow.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include "core/error.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

#include "tracked_run.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::TrackedRun;

TEST_CASE("mlflow: a number has one line a step, whatever became of the run meanwhile", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  test::tell_a_hard_life<MlflowSink>(run);
  const fs::path folder = dir / "mlruns/0/20261128-2147-5f3a91c2";
  CHECK(read_file(folder / "metrics/loss") ==
        "1800000001000 1 1\n1800000002000 1 2\n1800000003000 1 3\n1800000004000 1 4\n1800000005000 2 5\n1800000006000 2 6\n"
        "1800000007000 3 7\n1800000008000 3 8\n");
  CHECK_THAT(read_file(folder / "metrics/watch.grads.layers.0"), Contains(" 2 8\n"));
  CHECK(fs::exists(folder / "metrics/watch.grads"));
  CHECK_THAT(read_file(folder / "metrics/eval.loss"), Contains(" 0.5 8\n"));
  CHECK(read_file(folder / "params/optimizer.lr") == "0.25");
  CHECK(read_file(folder / "params/optimizer.name") == "adamw");
  CHECK_THAT(read_file(folder / "meta.yaml"), Contains("status: 3\n"));
}

TEST_CASE("mlflow: what cannot be written waits, is kept by a checkpoint, and is written once", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  const fs::path file = dir / "mlruns/0/20261128-2147-5f3a91c2/metrics/loss";
  config::Node saved;
  {
    MlflowSink sink;
    run.begin(sink, 0);
    test::tell_steps(sink, 1, 2, 1);
    fs::rename(file, dir / "aside");
    fs::create_directory(file);
    test::tell_steps(sink, 3, 4, 1);
    CHECK_THAT(sink.fault(), Contains("it is a folder"));
    saved = sink.state();
    fs::remove(file);
    fs::rename(dir / "aside", file);
    test::tell_steps(sink, 5, 5, 1);
    CHECK(sink.fault().empty());
  }
  CHECK(split(read_file(file), '\n').size() == 6);
  MlflowSink sink;
  sink.load(saved);
  run.begin(sink, 4);
  CHECK(split(read_file(file), '\n').size() == 5);
  CHECK_THROWS_WITH(sink.load(config::Node("x")), Contains("no list"));
  CHECK_THROWS_WITH(sink.load(config::Node(config::Array{
                        config::Node(config::Array{config::Node("../x"), config::Node(std::int64_t{1}), config::Node("t")})})),
                    Contains("no file, step and text"));
}

TEST_CASE("mlflow: two names have two files, whichever comes first, and the run's own are readable", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  const auto files_of = [&](const char* first, const char* second, const fs::path& metrics) {
    MlflowSink sink;
    run.begin(sink, 0);
    StepRow row = test::tracked_row(1, 1);
    row.extra = {{first, 1}, {second, 2}, {"watch/grads", 3}, {"watch.grads", 4}, {"a:b", 5}, {"a_b", 6}};
    sink.row(row);
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(metrics)) {
      out[entry.path().filename().string()] = split(read_file(entry.path()), ' ').at(1);
    }
    return out;
  };
  const fs::path metrics = dir / "mlruns/0/20261128-2147-5f3a91c2/metrics";
  auto one = files_of("a/b", "a.b", metrics);
  auto other = files_of("a.b", "a/b", metrics);
  CHECK(one["a.b"] == "1");
  CHECK(other["a.b"] == "2");
  CHECK(one["watch.grads"] == "3");
  CHECK(one["a_b"] == "6");
  CHECK(one.size() == other.size());
  for (const auto& [file, value] : one) {
    CHECK(other.contains(file));
  }
  CHECK(std::count_if(one.begin(), one.end(), [](const auto& file) { return file.first.find('-') != std::string::npos; }) == 3);
}

TEST_CASE("mlflow: a run begins and goes on where the disk is full, and all is written when it is not", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  const fs::path folder = dir / "mlruns/0/20261128-2147-5f3a91c2";
  for (const std::int64_t completed : {0, 2}) {
    std::optional<test::FileSizeLimit> full(0);
    MlflowSink sink;
    run.begin(sink, completed);
    test::tell_steps(sink, completed + 1, completed + 2, 1);
    const std::string fault = sink.fault();
    full.reset();
    CHECK_THAT(fault, Contains("File too large"));
    test::tell_steps(sink, completed + 3, completed + 3, 1);
    CHECK(sink.fault().empty());
    CHECK(split(read_file(folder / "metrics/loss"), '\n').size() == static_cast<std::size_t>(completed) + 4);
    CHECK(read_file(folder / "params/optimizer.lr") == "0.25");
    CHECK_THAT(read_file(folder / "meta.yaml"), Contains("status: 1\n"));
  }
}
