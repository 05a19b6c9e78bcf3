// Jobs of a real Slurm, of this machine alone (scripts/slurm.sh).

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "e2e/toy.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

fs::path packages() {
  const char* const named = std::getenv("KF_SLURM");
  return named != nullptr ? fs::path(named) : fs::path(KF_SOURCE_DIR) / ".deps/slurm";
}

/// Runs the words of a shell where sbatch, srun and kf-host are found; `$examples` are the scripts that users are shown.
Finished under_slurm(const Toy& toy, const std::string& words) {
  toy.write("go.sh", words);
  Options options;
  options.cwd = toy.folder();
  options.timeout = std::chrono::seconds(200);
  options.env = {{"PATH", fs::path(toy.command({}).front()).parent_path().string() + ":" + std::getenv("PATH")},
                 {"examples", (fs::path(KF_SOURCE_DIR) / "examples/slurm").string()},
                 {"SLURM_SCRATCH", (toy / "slurm").string()}};
  return run({(fs::path(KF_SOURCE_DIR) / "scripts/slurm.sh").string(), "run", "bash", "-euo", "pipefail", "go.sh"}, options);
}

/// What the tests of a machine without the packages do.
bool cannot() {
  const bool none = !fs::exists(packages() / "usr/sbin/slurmctld-wlm");
  if (none) {
    std::cerr << "skipped: there is no Slurm in " << packages() << "; scripts/slurm.sh fetches it where there is a network\n";
  }
  return none;
}

const char* const kSmall = "--nodes=1 --ntasks-per-node=2 --cpus-per-task=1 --time=5";

}  // namespace

TEST_CASE("slurm: two tasks of a job train together, and a signal before its end saves, requeues and goes on", "[slurm]") {
  if (cannot()) {
    return;
  }
  const Toy toy;
  // The toy's steps are short: a pause in each keeps the run from ending before the signal.
  toy.write(
      "slow.lua",
      "local kf = require('kf')\nlocal ffi = require('ffi')\nffi.cdef[[ int usleep(unsigned); ]]\n"
      "return { extends = 'toy.toml', train = { max_steps = 40, batch_size = 2 }, eval = { enabled = false }, hooks = { { name = 'slow', "
      "on_step_end = function() if not os.getenv('SLURM_RESTART_COUNT') then ffi.C.usleep(200000) end end } } }\n");
  const std::string small = kSmall;
  const Finished done = under_slurm(toy, "sbatch --wait " + small +
                                             " --output=one.out $examples/train.sbatch toy.toml --train.batch_size=2\n"
                                             "job=$(sbatch --parsable " +
                                             small +
                                             " --output=two.out $examples/train.sbatch slow.lua)\n"
                                             "until grep -q '\"step\": 5,' runs/slow/metrics.jsonl 2>/dev/null; do sleep 0.1; done\n"
                                             "scancel --signal=USR1 $job\n"
                                             "until squeue --noheader --format=%T --job=$job | grep -q PENDING; do sleep 0.1; done\n"
                                             "scontrol update JobId=$job StartTime=now\n"
                                             "until scontrol show job $job | grep -q JobState=COMPLETED; do sleep 0.2; done\n"
                                             "scontrol show job $job\n");
  INFO(done.err << done.out);
  INFO((fs::exists(toy / "two.out") ? toy.read("two.out") : "") << (fs::exists(toy / "one.out") ? toy.read("one.out") : ""));
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("Restarts=1"));
  const Finished own = toy.host({"--nproc=2", "toy.toml", "--run.name=own", "--train.batch_size=2"});
  REQUIRE(own.status == 0);
  CHECK(toy.series("toy", "loss") == toy.series("own", "loss"));
  const std::string said = toy.read("two.out");
  CHECK_THAT(said, Contains("run.requeue: Slurm starts job") && Contains("resumed from") && Contains("training complete: 40 steps"));
  CHECK(toy.series("slow", "loss").size() == 40);
}

TEST_CASE("slurm: the tasks of an array are workers of one sweep", "[slurm]") {
  if (cannot()) {
    return;
  }
  const Toy toy;
  toy.write("search.lua",
            "local kf = require('kf')\nreturn kf.sweep({ base = { extends = 'toy.toml', train = { max_steps = 4 }, eval = { interval = 2, "
            "steps = "
            "1 } }, space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) }, method = 'random', seed = 3, trials = 6 })\n");
  const Finished done =
      under_slurm(toy,
                  "sbatch --wait --array=0-2 --cpus-per-task=1 --time=5 --output=array_%a.out $examples/sweep.sbatch search.lua\n"
                  "kf-host sweep show runs/search\n");
  INFO(done.err << done.out);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("6 complete"));
  for (const char* worker : {"array_0.out", "array_1.out", "array_2.out"}) {
    CHECK_THAT(toy.read(worker), Contains("6 complete"));
  }
}
