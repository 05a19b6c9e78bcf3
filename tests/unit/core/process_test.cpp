#include "support/process.h"

#include <catch2/catch.hpp>

#include <csignal>

#include "support/temp_dir.h"

using namespace kf::test;

TEST_CASE("process: status, output and errors come back", "[process]") {
  const Finished done = run({"sh", "-c", "cat; echo oops >&2; exit 7"}, {.in = "hello"});
  CHECK(done.status == 7);
  CHECK(done.out == "hello");
  CHECK(done.err == "oops\n");
  CHECK_FALSE(done.timed_out);
}

TEST_CASE("process: folder and environment are the caller's choice", "[process]") {
  const TempDir dir;
  const Finished done =
      run({"sh", "-c", "pwd; echo \"$KF_A,${HOME-none}\""}, {.cwd = dir.path(), .env = {{"KF_A", "a b"}}, .unset = {"HOME"}});
  CHECK(done.out == dir.path().string() + "\na b,none\n");
}

TEST_CASE("process: much input and output do not block each other", "[process]") {
  const std::string big(3'000'000, 'x');
  CHECK(run({"cat"}, {.in = big}).out == big);
  CHECK(run({"true"}, {.in = big}).status == 0);
}

TEST_CASE("process: one that does not end is killed with its children", "[process]") {
  const Finished done = run({"sh", "-c", "echo begun; sleep 600 & sleep 600"}, {.timeout = std::chrono::seconds(1)});
  CHECK(done.timed_out);
  CHECK(done.status == 128 + SIGKILL);
  CHECK(done.out == "begun\n");
}

TEST_CASE("process: a signal can be sent once it has said something", "[process]") {
  Process child({"sh", "-c", "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done"});
  REQUIRE(child.wait_for("ready"));
  child.signal(SIGTERM);
  const Finished done = child.wait();
  CHECK(done.status == 3);
  CHECK(done.out == "ready\ncaught\n");
}

TEST_CASE("process: a program that does not exist is an error", "[process]") {
  CHECK_THROWS_AS(run({"/no/such/program"}), std::runtime_error);
}
