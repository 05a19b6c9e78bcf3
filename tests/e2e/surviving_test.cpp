// What a run survives: crashes under --max-restarts, steps that stand still, Slurm's requeue, numbers that are not finite.

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;

namespace {

/// A job whose hook does `body` after every step.
std::string stepping(const std::string& body, const std::string& more = "") {
  return "local ffi = require('ffi')\nffi.cdef[[ void abort(void); int usleep(unsigned); ]]\n" +
         job("eval = { enabled = false }, " + more + " hooks = { { name = 'ender', on_step_end = function(ctx) " + body + " end } }");
}

/// Gives up its process after step 7 as long as the file `mark` is not there.
const char* const kCrashOnce = "if ctx.step == 7 and not io.open('mark') then io.open('mark', 'w'):close() ffi.C.abort() end";

Process start(const ScriptRun& run, const std::vector<std::string>& words, Options options = {}) {
  options.cwd = run.toy.folder();
  return Process(run.toy.command(words), options);
}

}  // namespace

TEST_CASE("surviving: a run that crashes goes on from its last checkpoint", "[surviving]") {
  // run.fresh is meant for the first start alone, wherever it stands.
  const auto [in_job, word] =
      GENERATE(table<std::string, std::string>({{"", ""}, {"run = { fresh = true },", ""}, {"", "--run.fresh=true"}}));
  const ScriptRun run(stepping(kCrashOnce, in_job));
  const Finished done = word.empty() ? run.go({"--max-restarts", "2"}) : run.go({"--max-restarts", "2", word});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("killed by signal 6") && Contains("restart 1 of 2 in 1 s") && !Contains("restart 2 of 2"));
  CHECK(run.toy.series("s", "loss").size() == 10);
  CHECK_FALSE(std::filesystem::exists(run.toy / "runs/s.1"));
  const ScriptRun straight(stepping("", in_job));
  REQUIRE(straight.go().status == 0);
  CHECK(run.toy.series("s", "loss") == straight.toy.series("s", "loss"));
}

TEST_CASE("surviving: under --max-restarts run.fresh begins every run anew that has not begun yet", "[surviving]") {
  const ScriptRun run(
      "local ffi = require('ffi')\nffi.cdef[[ void abort(void); ]]\n"
      "local function train(name, body) kf.run { extends = 'toy.toml', eval = { enabled = false }, run = { name = name, fresh = "
      "true }, hooks = { { name = 'h', on_step_end = body } } } end\n"
      "train('u1', function(ctx) " +
      std::string(kCrashOnce) + " end)\ntrain('u2', function() end)\n");
  run.toy.write("mark", "");
  REQUIRE(run.go().status == 0);  // of last week
  std::filesystem::remove(run.toy / "mark");
  const Finished done = run.go({"--max-restarts", "2"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, !Contains("already complete"));
  CHECK(std::filesystem::exists(run.toy / "runs/u1.1"));
  CHECK_FALSE(std::filesystem::exists(run.toy / "runs/u1.2"));
  CHECK(std::filesystem::exists(run.toy / "runs/u2.1"));
}

TEST_CASE("surviving: a rank that is killed is a reason to start again", "[surviving]") {
  const ScriptRun run(stepping("if kf.dist.rank == 1 then " + std::string(kCrashOnce) + " end"));
  const Finished done = run.go({"--max-restarts", "2", "--nproc", "2"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("restart 1 of 2") && !Contains("restart 2 of 2"));
  CHECK(run.toy.series("s", "loss").size() == 10);
}

TEST_CASE("surviving: restarts are used up, and errors of the job are none", "[surviving]") {
  const ScriptRun crashing(stepping("if ctx.step == 7 then ffi.C.abort() end"));
  const Finished used_up = crashing.go({"--max-restarts=1"});
  INFO(used_up.err);
  CHECK(used_up.status == 128 + SIGABRT);
  CHECK_THAT(used_up.err, Contains("restart 1 of 1") && Contains("--max-restarts 1 is used up"));
  const ScriptRun wrong(stepping("if ctx.step == 3 then error('no') end"));
  const Finished failed = wrong.go({"--max-restarts", "3"});
  CHECK(failed.status == 3);
  CHECK_THAT(failed.err, !Contains("restart"));
  const Finished number = wrong.go({"--max-restarts", "some"});
  CHECK(number.status == 2);
  CHECK_THAT(number.err, Contains("--max-restarts some: must be a number of restarts"));
}

TEST_CASE("surviving: a signal to the watching process stops the run after a save", "[surviving]") {
  const ScriptRun run(
      stepping("if ctx.step == 2 then print('> two') io.stdout:flush() end ffi.C.usleep(2000)", "train = { max_steps = 1000000 },"));
  Process process = start(run, {"s.lua", "--max-restarts", "2"});
  REQUIRE(process.wait_for("> two"));
  process.signal(SIGTERM);
  const Finished done = process.wait();
  INFO(done.out << done.err);
  CHECK(done.status == 75);
  CHECK_THAT(done.err, !Contains("restart"));
  CHECK_THAT(done.out, Contains("--max-restarts 2") && Contains("goes on from there"));
  CHECK(std::filesystem::exists(run.checkpoints() / "latest"));
}

TEST_CASE("surviving: ranks that are watched say the whole command, --max-restarts and --nproc", "[surviving]") {
  const ScriptRun run(
      stepping("if ctx.step == 2 then print('> two') io.stdout:flush() end ffi.C.usleep(2000)", "train = { max_steps = 1000000 },"));
  Process process = start(run, {"s.lua", "--max-restarts", "2", "--nproc", "2"});
  REQUIRE(process.wait_for("> two"));
  process.signal(SIGTERM);
  const Finished done = process.wait();
  INFO(done.out << done.err);
  CHECK(done.status == 75);
  CHECK_THAT(done.out, Contains("--max-restarts 2") && Contains("--nproc 2") && Contains("goes on from there"));
}

TEST_CASE("surviving: a step that stands still leaves the stacks of all threads", "[surviving]") {
  const ScriptRun run("jit.off()\n" + stepping("if ctx.step == 3 then local t = os.time() while os.time() < t + 60 do end end",
                                               "run = { stall_timeout_sec = 5, on_stall = 'abort' },"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 7);
  CHECK_THAT(done.err, Contains("the run has not moved for 5 s (step 3, steps; run.stall_timeout_sec)") &&
                           Contains("hook 'ender', step_end, step 3"));
  const std::string stacks = run.toy.read("runs/s/incidents/stall_step_3/stacks.txt");
  INFO(stacks);
  CHECK_THAT(stacks, Contains("kf::TrainLoop::run(") && Contains("hook 'ender', step_end, step 3"));
  CHECK_THAT(stacks, Contains("Lua:\nstack traceback:") && Contains("s.lua:5: in function"));
}

TEST_CASE("surviving: a stall is reported and the run goes on", "[surviving]") {
  const ScriptRun run(
      stepping("if ctx.step == 3 then while not io.open('runs/s/incidents/stall_step_3/stacks.txt') do ffi.C.usleep(500000) end end",
               "run = { stall_timeout_sec = 1 },"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(run.toy.read("runs/s/incidents/stall_step_3/stacks.txt"), Contains("usleep") || Contains("nanosleep"));
}

TEST_CASE("surviving: under Slurm a run that a signal has stopped asks for its job again", "[surviving]") {
  const ScriptRun run(stepping("if ctx.step == 2 then print('> two') io.stdout:flush() end ffi.C.usleep(2000)",
                               "train = { max_steps = 1000000 }, run = { requeue = true },"));
  // Slurm itself is not there: what matters here is which program is called with which words.
  const std::filesystem::path scontrol = run.toy.write("bin/scontrol", "#!/bin/sh\necho \"$@\" >> asked\n");
  std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
  Options slurm;
  slurm.env = {{"SLURM_JOB_ID", "4711"}, {"PATH", (run.toy / "bin").string() + ":" + std::getenv("PATH")}};
  Process process = start(run, {"s.lua"}, slurm);
  REQUIRE(process.wait_for("> two"));
  process.signal(SIGUSR1);
  const Finished done = process.wait();
  INFO(done.out << done.err);
  CHECK(done.status == 75);
  CHECK(run.toy.read("asked") == "requeue 4711\n");
}

TEST_CASE("surviving: a step whose numbers are not finite is kept and can be run again", "[surviving]") {
  const ScriptRun run(
      job("eval = { enabled = false }, checkpoint = { interval = 2 }, metrics = { log_interval = 1 }, hooks = { { name = 'bad', "
          "on_backward_end = function(ctx) if ctx.step == 4 then for _, g in ctx:gradients() do g:fill_(0/0) break end end end } }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::filesystem::path incident = run.toy / "runs/s/incidents/step_5";
  CHECK_THAT(done.err + done.out, Contains("kf-host replay") && Contains("incidents/step_5"));
  CHECK_THAT(run.toy.read("runs/s/incidents/step_5/incident.json"), Contains("\"step\": 5"));
  CHECK(std::filesystem::exists(incident / "batch.safetensors"));
  const std::string before = run.toy.read("runs/s/metrics.jsonl");
  run.write("return { extends = 'toy.toml' }\n");  // the incident has its own copy of the script
  const Finished again = run.toy.host({"replay", "runs/s/incidents/step_5"});
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("equal those of the run, bit for bit") && Contains("stands in what a hook wrote, in the gradient of"));
  CHECK_THAT(again.out, Contains("layers.0.attention") && Contains("layers.1.mlp.down_proj"));
  CHECK(run.toy.read("runs/s/metrics.jsonl") == before);
  CHECK_FALSE(std::filesystem::exists(incident / "replay/checkpoints/latest"));
}

TEST_CASE("surviving: weights that are not finite are found before the forward", "[surviving]") {
  const Toy toy;
  const Finished done = toy.train({"--optimizer.lr=1e38", "--train.grad_clip_norm=1e30", "--eval.enabled=false"});
  INFO(done.out << done.err);
  const std::filesystem::path incidents = toy / "runs/toy/incidents";
  REQUIRE(std::filesystem::exists(incidents));
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(incidents)) {
    kept.push_back(entry.path().filename().string());
  }
  CHECK(kept.size() == 3);  // run.keep_incidents
  std::sort(kept.begin(), kept.end());
  const Finished again = toy.host({"replay", "runs/toy/incidents/" + kept.front()});
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("the first number that is not finite stands") && Contains("bit for bit"));
  CHECK(toy.host({"replay", "runs/toy"}).status == 6);
}

TEST_CASE("surviving: a replay leaves the checkpoints of the run alone, wherever they and the run lie", "[surviving]") {
  const ScriptRun run(
      job("eval = { enabled = false }, checkpoint = { dir = 'saved', interval = 2, keep_last_n = 1 }, hooks = { { name = 'bad', "
          "on_backward_end = function(ctx) if ctx.step == 6 then for _, g in ctx:gradients() do g:fill_(0/0) break end end end } }"));
  REQUIRE(run.go().status == 0);
  std::filesystem::rename(run.toy / "runs/s", run.toy / "elsewhere");
  run.toy.write("checkpoints/mine", "x");  // the user's, where the replay is called
  const Finished again = run.toy.host({"replay", "elsewhere/incidents/step_7"});
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("bit for bit"));
  CHECK(std::filesystem::exists(run.toy / "saved/step_10/state.json"));
  CHECK_FALSE(std::filesystem::exists(run.toy / "saved.1"));
  CHECK(std::filesystem::exists(run.toy / "checkpoints/mine"));
  CHECK_FALSE(std::filesystem::exists(run.toy / "checkpoints.1"));
}

TEST_CASE("surviving: of several ranks each keeps its part of an incident, which one process cannot run again", "[surviving]") {
  const ScriptRun run(
      job("eval = { enabled = false }, train = { max_steps = 4 }, hooks = { { name = 'bad', "
          "on_backward_end = function(ctx) if ctx.step == 1 then for _, g in ctx:gradients() do g:fill_(0/0) break end end end } }"));
  const Finished done = run.go({"--nproc", "2"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  for (const char* file : {"incident.json", "weights.json", "weights.rank-1.json", "batch.safetensors", "batch.rank-1.safetensors"}) {
    INFO(file);
    CHECK(std::filesystem::exists(run.toy / "runs/s/incidents/step_2" / file));
  }
  const Finished again = run.toy.host({"replay", "runs/s/incidents/step_2"});
  CHECK(again.status == 2);
  CHECK_THAT(again.err, Contains("a run of 2 ranks"));
}
