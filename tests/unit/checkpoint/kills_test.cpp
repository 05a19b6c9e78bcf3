// Processes that are killed while they save, on the disk as it is and on a slow one.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "core/error.h"
#include "core/log.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/checkpoint/fake_run.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using test::FakeRun;

namespace {

constexpr int kKills = 100;

/// What a child says of its saves.
struct Mark {
  std::int64_t step = 0;
  bool saved = false;  // false: the save begins
};

/// The first save after `step` and all that follow it, half of them by a thread, until the process is killed.
[[noreturn]] void save_on(const fs::path& dir, std::int64_t step, bool behind, int out) {
  FakeRun run(dir, 2);
  const auto say = [out](Mark mark) {
    if (::write(out, &mark, sizeof mark) != sizeof mark) {
      ::_exit(1);
    }
  };
  for (std::int64_t next = step + 1;; ++next) {
    say({next, false});
    behind ? run.save_behind(next) : void(run.save(next));
    say({next, true});
  }
}

struct Kills {
  int inside = 0, inside_behind = 0;  // of a save; of one in the background
  std::int64_t saved = 0;             // the last step that is on the disk
};

/// Each child goes on from the newest checkpoint, which must be whole, hold what was saved, and be the last one that its child was told of
/// or the one that it was about to make.
Kills kill_saves(const fs::path& dir) {
  std::mt19937 random(3);
  Kills out;
  for (int round = 0; round < kKills; ++round) {
    const bool behind = round % 2 == 1;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      save_on(dir, out.saved, behind, ends[1]);
    }
    ::close(ends[1]);
    Mark last;
    REQUIRE(::read(ends[0], &last, sizeof last) == sizeof last);
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(::read(ends[0], &last, sizeof last) == sizeof last);
    const std::chrono::duration<double, std::micro> one_save = std::chrono::steady_clock::now() - begin;
    // Anywhere in the next save or two, however fast the disk is.
    ::usleep(static_cast<useconds_t>(one_save.count() * 2 * std::uniform_real_distribution<>()(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::int64_t told = last.step;
    while (::read(ends[0], &last, sizeof last) == sizeof last) {
      told = last.saved ? last.step : told;
    }
    ::close(ends[0]);
    out.inside += last.saved ? 0 : 1;
    out.inside_behind += !last.saved && behind ? 1 : 0;
    REQUIRE(fs::exists(dir / "latest" / "state.json"));
    FakeRun run(dir, 2);
    const std::size_t warnings = log::count(log::Level::warn);
    out.saved = run.newest();
    CHECK(log::count(log::Level::warn) == warnings);  // `latest` itself is good
    CHECK(out.saved >= told);
    CHECK(out.saved <= told + 1);
  }
  return out;
}

/// Saves step 2 while the `at`-th call of that kind fails. 0: it made fewer; 1: it failed, saying why; else something is wrong.
int failing_save(const fs::path& dir, const std::string& call, int at, bool behind) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("KF_DISK_CALL", call.c_str(), 1);
    ::setenv("KF_DISK_FAIL_AT", std::to_string(at).c_str(), 1);
    int status = 2;
    try {
      FakeRun run(dir, 2);
      behind ? run.save_behind(2) : void(run.save(2));
      status = 0;
    } catch (const Error& e) {
      status = e.code() == Code::checkpoint && std::string(e.what()).find("Input/output error") != std::string::npos ? 1 : 3;
      std::printf("%s\n", status == 1 ? "" : e.what());
    }
    std::fflush(stdout);
    ::_exit(status);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// This test again, behind a disk with these faults.
test::Finished behind_disk(const test::TempDir& dir, const std::string& tag, std::map<std::string, std::string> env) {
  fs::copy_file(KF_FAULTY_DISK, dir / "disk.so");  // LD_PRELOAD knows no path with a blank
  env["LD_PRELOAD"] = (dir / "disk.so").string();
  env["KF_DISK_PATH"] = (dir / "checkpoints").string();
  test::Options options;
  options.env = std::move(env);
  return test::run({fs::read_symlink("/proc/self/exe").string(), tag}, options);
}

}  // namespace

TEST_CASE("checkpoint: killed at any moment, latest always loads", "[checkpoint]") {
  const test::TempDir dir;
  CHECK(kill_saves(dir.path()).saved >= kKills);
}

TEST_CASE("checkpoint: (a process of the next test, behind a slow disk)", "[.][slow_disk]") {
  const char* const dir = std::getenv("KF_DISK_PATH");
  REQUIRE(dir != nullptr);
  const Kills kills = kill_saves(dir);
  CHECK(kills.saved >= kKills);
  // Between two saves lies a write to a pipe, and within one every write, fsync and rename waits.
  CHECK(kills.inside >= kKills * 9 / 10);
  CHECK(kills.inside_behind >= kKills * 4 / 10);
  std::printf("%d kills inside a save, %d of them in the background\n", kills.inside, kills.inside_behind);
}

TEST_CASE("checkpoint: killed a hundred times inside saves on a slow disk, latest always loads", "[checkpoint]") {
  const test::TempDir dir;
  const test::Finished done = behind_disk(dir, "[slow_disk]", {{"KF_DISK_CALL", "write,fsync,rename"}, {"KF_DISK_DELAY_MS", "1"}});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK(done.out.find("kills inside a save") != std::string::npos);
}

TEST_CASE("checkpoint: (a process of the next test, behind a failing disk)", "[.][failing_disk]") {
  const char* const dir = std::getenv("KF_DISK_PATH");
  REQUIRE(dir != nullptr);
  int failed = 0;
  for (const bool behind : {false, true}) {
    for (const std::string call : {"write", "fsync", "rename"}) {
      int status = 1;
      for (int at = 1; status != 0; ++at) {
        fs::remove_all(dir);
        FakeRun run(dir, 2);
        run.save(1);
        status = failing_save(dir, call, at, behind);
        INFO(call << " " << at << (behind ? " in the background" : ""));
        REQUIRE(status <= 1);
        failed += status;
        const std::int64_t newest = run.newest();  // compared with what was saved
        CHECK((status == 1 ? newest == 1 || newest == 2 : newest == 2));
        run.save(3);
        CHECK(run.newest() == 3);
      }
    }
  }
  std::printf("%d saves failed\n", failed);
  CHECK(failed >= 2 * (4 + 4 + 2));  // a write and an fsync for each of four files, the folder's name and that of `latest`
}

TEST_CASE("checkpoint: EIO at each write, fsync and rename of a save is its error, and the earlier checkpoint stays", "[checkpoint]") {
  const test::TempDir dir;
  const test::Finished done = behind_disk(dir, "[failing_disk]", {{"KF_DISK_ERRNO", "5"}});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK(done.out.find("saves failed") != std::string::npos);
}
