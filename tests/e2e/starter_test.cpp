// The first folder and the first look at the machine: kf-host new, kf-host doctor.

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/tree/json.h"
#include "core/fs.h"
#include "e2e/toy.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

Finished host(const fs::path& folder, const std::vector<std::string>& args, std::map<std::string, std::string> env = {}) {
  std::vector<std::string> argv{KF_HOST};
  argv.insert(argv.end(), args.begin(), args.end());
  return run(argv, {.cwd = folder, .env = std::move(env)});
}

std::string text_at(const kf::config::Node& tree, const std::string& key) {
  return std::get<std::string>(kf::config::find_node(*tree.table(), key)->value);
}

/// The doctor's findings by their names.
std::map<std::string, kf::config::Node> findings_of(const Finished& done) {
  INFO(done.out << done.err);
  const kf::config::Node tree = kf::config::parse_json(done.out, "the findings");
  std::map<std::string, kf::config::Node> out;
  for (const kf::config::Node& one : *kf::config::find_node(*tree.table(), "findings")->array()) {
    out[text_at(one, "name")] = one;
  }
  return out;
}

}  // namespace

TEST_CASE("starter: a new folder trains as it stands, its job and its recipe, and is never written over", "[cli]") {
  const TempDir dir;
  const Finished made = host(dir.path(), {"new", "mine"});
  INFO(made.out << made.err);
  REQUIRE(made.status == 0);
  CHECK_THAT(made.out, Contains("cd mine && kf-host job.toml"));
  const fs::path mine = dir / "mine";
  for (const std::string job : {"job.toml", "recipe.lua"}) {
    const Finished done = host(
        mine, {job, "--train.max_steps=2", "--scheduler.warmup_steps=1", "--eval.interval=2", "--eval.steps=1", "--checkpoint.interval=2"});
    INFO(done.out << done.err);
    CHECK(done.status == 0);
    CHECK(done.err.find("warn") == std::string::npos);
  }
  CHECK(fs::exists(mine / "runs/first/metrics.jsonl"));
  CHECK_THAT(kf::read_file(mine / "runs/valley/log.txt"), Contains("step 2: the best evaluation so far"));
  for (std::string command : commands_of(mine / "README.md")) {
    CAPTURE(command);
    command = command.substr(0, command.find(" #"));
    command += command.find("profile") != std::string::npos    ? " --steps 1 --eval.enabled=false"
               : command.find("generate") != std::string::npos ? " --max-new-tokens 2"
                                                               : "";
    const bool trains = command.starts_with("kf-host job") || command.starts_with("kf-host recipe");  // has been done above
    const Finished done =
        run({"bash", "-c", "kf-host() { '" + std::string(KF_HOST) + "' \"$@\"; }; " + (trains ? "true" : command)}, {.cwd = mine});
    INFO(done.out << done.err);
    CHECK(done.status == 0);
  }
  const Finished again = host(dir.path(), {"new", "mine"});
  CHECK(again.status == 2);
  CHECK_THAT(again.err, Contains("mine is there already, and is left as it is"));
  dir.write("file", "x");
  CHECK(host(dir.path(), {"new", "file"}).status == 2);
  CHECK(host(dir.path(), {"new"}).status == 2);
  CHECK(host(dir.path(), {"new", "a/b"}).status == 0);
  CHECK_THAT(host(dir.path(), {"new", "it's mine/"}).out, Contains("cd 'it'\\''s mine' && kf-host job.toml"));
  const Finished control = host(dir.path(), {"new", "a\x1b[2J"});
  CHECK(control.status == 2);
  CHECK_THAT(control.err, Contains("control characters") && !Contains("\x1b"));
}

TEST_CASE("starter: a folder that cannot be filled is not left half", "[cli]") {
  const TempDir dir;
  fs::create_directory(dir / "there");
  const Finished full =
      run({"sh", "-c", "trap '' XFSZ; ulimit -f 4; exec '" + std::string(KF_HOST) + "' new there/a/b"}, {.cwd = dir.path()});
  INFO(full.out << full.err);
  CHECK(full.status == 1);
  CHECK_THAT(full.err, Contains("cannot write "));
  CHECK(fs::is_empty(dir / "there"));
}

TEST_CASE("starter: the schema of a new folder is what editors check a job with", "[cli]") {
  const TempDir dir;
  REQUIRE(host(dir.path(), {"new", "mine"}).status == 0);
  const fs::path mine = dir / "mine";
  CHECK(kf::read_file(mine / "job.toml").starts_with("#:schema ./.editor/schema.json\n"));
  CHECK(kf::config::parse_json(kf::read_file(mine / ".editor/schema.json"), "the schema").table() != nullptr);
  const fs::path taplo = fs::path(KF_SOURCE_DIR) / ".deps/taplo/bin/taplo";
  if (!fs::exists(taplo)) {
    WARN("Taplo is not in .deps/taplo (scripts/taplo.sh): no editor has looked at the job");
    return;
  }
  const auto lint = [&](const std::string& file) { return run({taplo.string(), "lint", "--no-auto-config", file}, {.cwd = mine}); };
  const Finished fine = lint("job.toml");
  INFO(fine.out << fine.err);
  CHECK(fine.status == 0);
  dir.write("mine/wrong.toml", "#:schema ./.editor/schema.json\n[train]\nmax_stepz = 3\n[optimizer]\nlr = -1\n");
  const Finished wrong = lint("wrong.toml");
  CHECK(wrong.status != 0);
  CHECK_THAT(wrong.err, Contains("max_stepz"));
}

TEST_CASE("doctor: says what this machine can do, and is well where jobs train", "[cli]") {
  const TempDir dir;
  const Finished done = host(dir.path(), {"doctor"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  for (const std::string name :
       {"processor", "cores", "memory", "torch", "gpu", "parquet", "disk", "temporary", "shared memory", "limits", "started by"}) {
    CAPTURE(name);
    CHECK_THAT(done.out, Contains("\n  " + name + " ") || Contains("\n! " + name + " "));
  }
  CHECK_THAT(done.out, Contains("jobs can train here"));
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("doctor: every kind of finding is told to scripts, with what to do", "[cli]") {
  const TempDir dir;
  const auto state = [](const kf::config::Node& one) { return text_at(one, "state"); };
  std::map<std::string, kf::config::Node> all =
      findings_of(host(dir.path(), {"doctor", "not/there/yet", "--json"},
                       {{"OMP_NUM_THREADS", "4096"}, {"SLURM_JOB_ID", "17"}, {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"TMPDIR", "/no/such"}}));
  CHECK(state(all["cores"]) == "poor");
  CHECK_THAT(text_at(all["cores"], "remedy"), Contains("OMP_NUM_THREADS"));
  CHECK(state(all["temporary"]) == "poor");
  CHECK_THAT(text_at(all["started by"], "says"), Contains("torchrun: WORLD_SIZE=4 RANK=1") && Contains("job 17 of Slurm"));
  CHECK_THAT(text_at(all["disk"], "says"), Contains(" a second written"));

  const Finished without = host(dir.path(), {"doctor", "--json"}, {{"KF_TORCH_DIR", "/no/such/folder"}});
  CHECK(without.status == 1);
  all = findings_of(without);
  CHECK(state(all["torch"]) == "bad");
  CHECK_THAT(text_at(all["torch"], "says"), Contains("/no/such/folder"));
  CHECK_THAT(text_at(all["torch"], "remedy"), Contains("KF_TORCH_DIR"));

  const Finished no_room = host(dir.path(), {"doctor", "/proc/1"});
  CHECK(no_room.status == 1);
  CHECK_THAT(no_room.out, Contains("X disk") && Contains("jobs cannot train here"));
  CHECK(host(dir.path(), {"doctor", "--jsn"}).status == 2);
  for (const std::string command : {"doctor", "new --help"}) {
    const Finished full = run({"sh", "-c", "'" + std::string(KF_HOST) + "' " + command + " > /dev/full"}, {.cwd = dir.path()});
    CHECK(full.status == 1);
    CHECK(full.err == "kf-host: not everything could be written to standard output\n");
  }
}
