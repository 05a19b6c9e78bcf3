#include "metrics/mlflow/mlflow.h"

#include <catch2/catch.hpp>

#include "core/error.h"
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
