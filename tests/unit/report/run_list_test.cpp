#include "report/read/run_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/text.h"
#include "report/read/lock_look.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::report::list_runs;
using kf::report::RunState;
using kf::report::RunSummary;
using kf::report::summary_of;
using kf::test::TempDir;

namespace {

std::string this_host() {
  utsname system{};
  ::uname(&system);
  return system.nodename;
}

/// A start of run.json on this machine, and how it ended.
std::string start(const std::string& more, const std::string& time = "2026-11-28T21:47:03Z") {
  return kf::format("{\"time\": \"{}\", \"host\": \"{}\", \"device\": \"cpu\", \"step\": 0{}}", time, this_host(), more);
}

void write_run(const TempDir& dir, const std::string& name, const std::string& starts) {
  dir.write(fs::path(name) / "run.json",
            kf::format("{\"id\": \"1\", \"name\": \"{}\", \"tags\": [\"a\"], \"starts\": [{}]}", name, starts));
}

const RunSummary& named(const kf::report::RunList& list, const std::string& name) {
  const auto found = std::find_if(list.runs.begin(), list.runs.end(), [&](const RunSummary& run) { return run.name == name; });
  REQUIRE(found != list.runs.end());
  return *found;
}

/// Holds the lock of a folder, as a run does.
kf::Descriptor locked(const fs::path& folder) {
  kf::Descriptor out(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT, 0644));
  REQUIRE(::flock(out.get(), LOCK_EX | LOCK_NB) == 0);
  return out;
}

}  // namespace

TEST_CASE("report: a run's state follows from its lock, its record and its machine", "[report]") {
  const TempDir dir;
  write_run(dir, "finished", start(", \"end\": \"2026-11-28T22:00:00Z\", \"status\": \"complete\", \"steps\": 60"));
  write_run(dir, "stopped", start(", \"end\": \"2026-11-28T22:00:00Z\", \"status\": \"stopped\", \"steps\": 6"));
  dir.write("stopped/result.json", "{\"status\": \"stopped\", \"reason\": \"the loss is low\"}");
  write_run(dir, "failed", start(", \"end\": \"2026-11-28T22:00:00Z\", \"status\": \"failed\", \"steps\": 3, \"error\": \"no room\""));
  write_run(dir, "killed", start(""));
  write_run(dir, "away", "{\"time\": \"2026-11-28T21:47:03Z\", \"host\": \"another\", \"step\": 0}");
  write_run(dir, "running", start(""));
  dir.write("broken/run.json", "{\"id\": ");
  const kf::Descriptor lock = locked(dir / "running");

  const kf::report::RunList list = list_runs(dir.path());
  CHECK(list.runs.size() == 7);
  CHECK(list.unreadable.empty());
  CHECK(named(list, "finished").state == RunState::finished);
  CHECK(named(list, "finished").step == 60);
  CHECK(named(list, "stopped").state == RunState::stopped);
  CHECK(named(list, "stopped").reason == "the loss is low");
  CHECK(named(list, "failed").state == RunState::failed);
  CHECK(named(list, "failed").reason == "no room");
  CHECK(named(list, "killed").state == RunState::killed);
  CHECK(named(list, "away").state == RunState::away);
  CHECK(named(list, "running").state == RunState::running);
  CHECK(named(list, "broken").state == RunState::unreadable);
  CHECK_THAT(named(list, "broken").reason, Contains("run.json"));
}

TEST_CASE("report: a look at a run's lock does not hold it", "[report]") {
  const TempDir dir;
  CHECK(kf::report::lock_of(dir.path()) == kf::report::Lock::free);
  {
    const kf::Descriptor lock = locked(dir.path());
    CHECK(kf::report::lock_of(dir.path()) == kf::report::Lock::held);
  }
  CHECK(kf::report::lock_of(dir.path()) == kf::report::Lock::free);
  locked(dir.path());
}

TEST_CASE("report: the numbers of a run are those of its last rows", "[report]") {
  const TempDir dir;
  write_run(dir, "a", start(""));
  dir.write("a/job.toml", "seed = 1\n\n[optimizer]\nmax_steps = 7\n\n[train]\nbatch_size = 4\nmax_steps = 80\n\n[data]\nmax_steps = 9\n");
  std::string rows;
  for (int step = 1; step <= 2000; ++step) {
    rows += kf::format("{\"step\": {}, \"loss\": {}, \"tokens\": {}, \"tokens_per_sec\": 10.5}\n", step, 1.0 / step, step * 8);
    if (step == 3) {
      rows += "{\"step\": 3, \"eval\": {\"loss\": 2.5}}\n";
    }
  }
  dir.write("a/metrics.jsonl", rows + "{\"step\": 2001, \"loss\": null}\n{\"step\": 2002, \"lo");
  const RunSummary run = summary_of(dir / "a");
  CHECK(run.step == 2001);
  CHECK(run.loss == 1.0 / 2000);
  CHECK(run.tokens == 16000.0);
  CHECK(run.tokens_per_sec == 10.5);
  CHECK(run.eval_loss == 2.5);
  CHECK(run.max_steps == 80);
  CHECK(run.began == 1795902423);
  CHECK(run.changed > 0);
  CHECK(run.tags == std::vector<std::string>{"a"});
}

TEST_CASE("report: runs are found below folders, the newest last, and not inside of runs", "[report]") {
  const TempDir dir;
  write_run(dir, "b", start("", "2026-11-28T21:47:03Z"));
  write_run(dir, "sweep/trials/0", start("", "2026-11-27T21:47:03Z"));
  write_run(dir, "b/incidents/step_3/replay", start(""));
  write_run(dir, ".hidden/c", start(""));
  dir.write("old/job.toml", "");
  dir.write("old/metrics.jsonl", "");
  dir.write("data/text.txt", "");
  fs::create_directory_symlink(dir.path(), dir / "circle");
  const kf::report::RunList list = list_runs(dir.path());
  REQUIRE(list.runs.size() == 3);
  CHECK(list.runs[0].folder == dir / "old");  // it does not say when it began
  CHECK(list.runs[1].folder == dir / "sweep/trials/0");
  CHECK(list.runs[2].folder == dir / "b");
  CHECK(list_runs(dir / "b").runs.size() == 1);
  CHECK(list_runs(dir / "data").runs.empty());
  CHECK_THROWS_WITH(list_runs(dir / "nowhere"), Contains("is no folder"));
}

TEST_CASE("report: a folder that cannot be read is told, the others are listed", "[report]") {
  if (::geteuid() == 0) {
    WARN("skipped: root can read every folder");
    return;
  }
  const TempDir dir;
  write_run(dir, "a", start(""));
  fs::create_directories(dir / "closed");
  fs::permissions(dir / "closed", fs::perms::none);
  const kf::report::RunList list = list_runs(dir.path());
  fs::permissions(dir / "closed", fs::perms::owner_all);
  CHECK(list.runs.size() == 1);
  REQUIRE(list.unreadable.size() == 1);
  CHECK(list.unreadable[0].path == dir / "closed");
}

TEST_CASE("report: a start whose keys are of other types is no error", "[report]") {
  const TempDir dir;
  dir.write("a/run.json", "{\"id\": 5, \"name\": [], \"tags\": 3, \"starts\": [1, {\"time\": 4, \"step\": \"x\", \"end\": \"no time\"}]}");
  const RunSummary run = summary_of(dir / "a");
  CHECK(run.name == "a");
  CHECK(run.began == 0);
}
