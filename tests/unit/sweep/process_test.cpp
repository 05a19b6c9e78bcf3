#include <csignal>
#include <thread>

#include "core/child.h"
#include "core/error.h"
#include "core/fs.h"
#include "support/temp_dir.h"
#include "sweep/failure_line.h"
#include "sweep/worker.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;

namespace {

Child::Ending wait_for(Child& child) {
  for (;;) {
    if (const auto ending = child.poll()) {
      return *ending;
    }
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("sweep: a child gets its words unread by a shell, its variables, and writes to its file", "[sweep]") {
  const test::TempDir dir;
  Child child({"/bin/sh", "-c", "echo \"$1 $KF_X\"; echo kf-host: no way >&2; exit 3", "sh", "$(whoami) 'a b'"}, {{"KF_X", "7"}},
              ChildOutput{dir / "out"});
  const Child::Ending ending = wait_for(child);
  CHECK(ending.status == 3);
  CHECK(read_file(dir / "out") == "$(whoami) 'a b' 7\nkf-host: no way\n");
  CHECK(failure_line(dir / "out") == "no way");
}

TEST_CASE("sweep: a killed child says which signal; one that cannot start is an error", "[sweep]") {
  const test::TempDir dir;
  Child child({"/bin/sleep", "60"}, {}, ChildOutput{dir / "out"});
  CHECK(ProcessId::of(child.pid()).alive());
  child.signal(SIGKILL);
  CHECK_THAT(wait_for(child).describe(), Catch::Contains("signal 9") && Catch::Contains("out of memory?"));
  CHECK_THROWS_WITH(Child({"/no/such/program"}, {}, ChildOutput{dir / "out"}), Catch::Contains("/no/such/program"));
}

TEST_CASE("sweep: a process is known by its start, not by its number alone", "[sweep]") {
  const Worker self = Worker::self();
  CHECK(self.process.alive());
  CHECK(self.on_this_machine());
  CHECK_FALSE(ProcessId{self.process.pid, "1"}.alive());
  const Worker again = Worker::from_node(self.to_node());
  CHECK(again.process.alive());
  CHECK(again.machine == self.machine);
}

TEST_CASE("sweep: of a report of several problems the first one is told", "[sweep]") {
  const test::TempDir dir;
  dir.write("out", "step 1\nkf-host: 2 problems in the job\n  sweep.lua:3   model.dim (33) must be a multiple of 4\n  other\n");
  CHECK_THAT(failure_line(dir / "out"), Catch::Contains("model.dim (33)"));
}
