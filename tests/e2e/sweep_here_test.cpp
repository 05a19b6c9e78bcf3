// Sweeps whose trials run in the worker's own process (isolate = false), against those whose trials are processes.

#include <csignal>
#include <memory>
#include <set>

#include "e2e/sweeps.h"
#include "sweep/runner.h"

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;
using kf::sweep::Trial;
using kf::sweep::TrialState;
using kf::test::Finished;
using kf::test::in_folder;
using kf::test::in_state;
using kf::test::Process;
using kf::test::sweep_script;
using kf::test::Toy;
using kf::test::trials_of;
using kf::test::wait_until;

namespace {

/// Products are not chosen by timing, so that two processes compute alike.
constexpr const char* kBase = "train = { max_steps = 4, cpu_products = 'plain' }, eval = { interval = 2, steps = 1 }";
constexpr const char* kSpace = "space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) },";
constexpr const char* kRandom = "space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) }, method = 'random', seed = 3,";

/// A short trial, and one that takes long enough to be caught in the middle and saves often.
constexpr const char* kShortAndLong =
    "space = { { ['train.max_steps'] = 2 }, { ['train.max_steps'] = 400 } }, method = 'list', isolate = false,";
constexpr const char* kLong = "train = { cpu_products = 'plain' }, eval = { interval = 1000, steps = 1 }, checkpoint = { interval = 40 }";

std::string folder_of(const std::string& sweep, std::size_t trial) {
  return kf::sweep::Runner::trial_folder(sweep, static_cast<std::int64_t>(trial)).string();
}

/// Two sweeps of one script, away.lua and here.lua, whose trials are processes and not; returns those of the second.
std::vector<Trial> run_twins(const Toy& toy, const std::string& rest, const std::string& base = kBase, const std::string& before = "") {
  for (const auto& [name, isolate] : {std::pair("away", ""), std::pair("here", " isolate = false,")}) {
    toy.write(std::string(name) + ".lua", before + sweep_script(rest + isolate, base));
    const Finished done = toy.host({std::string(name) + ".lua"});
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
  }
  return trials_of(toy, "here");
}

/// The script has another name there.
std::string in_words_of_here(std::string error) {
  const std::string name = "away.lua";
  for (std::size_t at = error.find(name); at != std::string::npos; at = error.find(name)) {
    error.replace(at, name.size(), "here.lua");
  }
  return error;
}

/// What both came to, to the last bit: trials, rows and weights.
void check_twins(const Toy& toy, std::size_t count) {
  const std::vector<Trial> apart = trials_of(toy, "away"), here = trials_of(toy, "here");
  REQUIRE(apart.size() == count);
  REQUIRE(here.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    INFO("trial " << i << ": " << here[i].text("error"));
    CHECK(here[i].state == apart[i].state);
    CHECK(here[i].value == apart[i].value);
    CHECK(here[i].reports == apart[i].reports);
    CHECK(here[i].text("error") == in_words_of_here(apart[i].text("error")));
    REQUIRE(here[i].parameters.size() == apart[i].parameters.size());
    for (std::size_t p = 0; p < here[i].parameters.size(); ++p) {
      CHECK(here[i].parameters[p].stored == apart[i].parameters[p].stored);
    }
    if (here[i].state == TrialState::complete) {
      CHECK(toy.series(folder_of("here", i), "loss") == toy.series(folder_of("away", i), "loss"));
      const std::string weights = "/checkpoints/latest/model.safetensors";
      CHECK(toy.read("runs/" + folder_of("here", i) + weights) == toy.read("runs/" + folder_of("away", i) + weights));
    }
  }
}

}  // namespace

TEST_CASE("sweep here: trials in one process come to the bits of trials that are processes, with every method", "[sweep]") {
  const Toy toy;
  SECTION("random") { run_twins(toy, std::string(kSpace) + "method = 'random', trials = 3, seed = 3,"); }
  SECTION("grid") { run_twins(toy, "space = { ['model.dim'] = kf.choice({ 16, 32, 48 }) }, method = 'grid',"); }
  SECTION("list") {
    run_twins(toy,
              "space = { { ['optimizer.name'] = 'lion' }, { ['train.seed'] = 5 }, { ['train.mixed_precision'] = 'bf16' } }, "
              "method = 'list',");
  }
  SECTION("asha") {
    run_twins(toy, std::string(kSpace) + "method = 'asha', prune = { min_resource = 2, reduction_factor = 2 }, trials = 3,");
  }
  SECTION("function") {
    run_twins(toy,
              "space = {}, method = function(number, trials) if number == 3 then return nil end\n"
              "  return { ['optimizer.lr'] = number == 0 and 1e-3 or trials[number].value * kf.rng:random() * 1e-3 } end,");
  }
  check_twins(toy, 3);
}

TEST_CASE("sweep here: tpe sees the trials so far as it does of processes", "[sweep]") {
  const Toy toy;
  const std::string base = "train = { max_steps = 1, cpu_products = 'plain' }, eval = { interval = 1, steps = 1 }";
  run_twins(toy, std::string(kSpace) + "method = 'tpe', trials = 12, seed = 3,", base);
  check_twins(toy, 12);
}

TEST_CASE("sweep here: what a trial writes is in its folder, and the terminal has the sweep's table", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 2, isolate = false,"));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("1 at a time in this process") && Contains("trial 0: complete") && Contains("2 trials: 2 complete"));
  CHECK_THAT(done.out, !Contains("training complete"));
  for (const char* trial : {"0000", "0001"}) {
    const std::string folder = std::string("runs/s/trials/") + trial;
    CHECK_THAT(toy.read(folder + "/output.txt"), Contains("training complete"));
    CHECK_THAT(toy.read(folder + "/log.txt"), Contains("training complete") && Contains(": complete\n"));
    CHECK(std::filesystem::exists(toy / folder / "code/s.lua"));
  }
  CHECK_THAT(toy.read("runs/s/trials.csv"), Contains("0,COMPLETE,") && Contains("1,COMPLETE,"));
  CHECK_THAT(toy.host({"sweep", "best", "runs/s"}).out, Contains("[optimizer]"));
}

TEST_CASE("sweep here: a trial leaves nothing to the next one", "[sweep]") {
  const Toy toy;
  const std::string before = R"(
local ffi = require('ffi')
ffi.cdef('int chdir(const char*); int setenv(const char*, const char*, int);')
assert(os.getenv('KF_LEFT') == nil and not left, 'an earlier trial left something')
assert(os.setlocale(nil, 'ctype') ~= 'C.UTF-8')
local calls = 0
local hook = { name = 'h', on_step_end = function(ctx)
  calls = calls + 1
  ctx:report(calls + require('kf').rng:random() * ctx:loss())
end }
)";
  const std::string rest =
      "space = { ['optimizer.lr'] = kf.choice({ 1e-3, 1.5e-3, 2e-3 }) }, method = 'grid', objective = function(result)\n"
      "  left = true\n  ffi.C.setenv('KF_LEFT', 'yes', 1)\n  os.setlocale('C.UTF-8', 'ctype')\n"
      "  calls = calls + 1\n  local value = calls + kf.rng:random()\n  ffi.C.chdir('/')\n  return value\nend,";
  const std::vector<Trial> here = run_twins(toy, rest, std::string(kBase) + ", hooks = { hook }", before);
  check_twins(toy, 3);
  for (const Trial& trial : here) {
    CHECK(static_cast<int>(*trial.value) == 5);  // four steps and the objective
    CHECK(*trial.value == *here[0].value);       // kf.rng begins anew
  }
}

TEST_CASE("sweep here: a trial that fails is a failed trial, in the words of one that is a process", "[sweep]") {
  const Toy toy;
  const std::string before = R"(
local kf = require('kf')
kf.register.transform('mask', function(a) return function(b)
  if a.config.optimizer.weight_decay > 0.25 then b.labels:fill_(-100) end
  return b
end end)
local hook = { name = 'h', on_step_end = function(ctx)
  assert(ctx.step < 2 or kf.config.train.seed ~= 13, 'an unlucky seed')
end }
)";
  const std::string base =
      "train = { max_steps = 3, cpu_products = 'plain' }, eval = { enabled = false }, data = { batch_transforms = { 'mask' } }, hooks = { "
      "hook }";
  run_twins(toy,
            "space = { { ['model.dim'] = 33 }, { ['train.seed'] = 13 }, { ['optimizer.weight_decay'] = 0.3 }, { ['data.dataset_path'] = "
            "'none' }, { ['train.seed'] = 7 } }, method = 'list', objective = 'loss',",
            base, before);
  check_twins(toy, 5);
  const std::vector<Trial> trials = trials_of(toy, "here");
  CHECK(in_state(trials, TrialState::fail) == 4);
  CHECK_THAT(trials[0].text("error"), Contains("33") && Contains("status 2"));
  CHECK_THAT(trials[1].text("error"), Contains("an unlucky seed") && Contains("status 3"));
  CHECK(trials[4].state == TrialState::complete);
  CHECK_THAT(toy.read("runs/here/trials/0000/output.txt"), Contains("kf-host: "));
  CHECK_THAT(toy.read("runs/here/trials/0000/log.txt"), Contains("33"));
  CHECK_THAT(toy.read("runs/here/trials/0001/log.txt"), Contains("unlucky seed") && Contains(": failed\n"));
  CHECK_THAT(toy.read("runs/here/trials/0004/log.txt"), !Contains("unlucky seed"));
}

TEST_CASE("sweep here: when no trial completes the exit status says so", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script("space = { ['model.dim'] = kf.choice({ 31, 33 }) }, method = 'grid', isolate = false"));
  const Finished done = toy.host({"s.lua"});
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("no trial completed"));
}

TEST_CASE("sweep here: a signal has the trial save; it goes on to what it would have come to", "[sweep]") {
  const Toy toy;
  toy.write("whole.lua", sweep_script(kShortAndLong, kLong));
  REQUIRE(toy.host({"whole.lua"}).status == 0);
  const std::vector<Trial> whole = trials_of(toy, "whole");
  for (const auto& [name, number] : {std::pair("int", SIGINT), std::pair("term", SIGTERM), std::pair("kill", SIGKILL)}) {
    CAPTURE(name);
    const std::string script = std::string(name) + ".lua", folder = std::string("runs/") + name, last = folder + "/trials/0001";
    toy.write(script, sweep_script(kShortAndLong, kLong));
    {
      Process sweep(toy.command({script}), in_folder(toy));
      wait_until(toy, name, [&](const std::vector<Trial>& trials) {
        return trials.size() == 2 && std::filesystem::exists(toy / last / "checkpoints/latest");
      });
      sweep.signal(number);
      const Finished done = sweep.wait();
      INFO(done.out << done.err);
      const std::vector<Trial> trials = trials_of(toy, name);
      CHECK(trials[0].state == TrialState::complete);
      if (number == SIGKILL) {
        CHECK(trials[1].state == TrialState::running);  // nobody could say more
      } else {
        CHECK(done.status == 75);
        CHECK_THAT(done.out, Contains("stopped: 2 trials: 1 complete, 1 waiting") && Contains("sweep resume " + folder + "` goes on"));
        CHECK_THAT(done.err, Contains("stopping after this step"));
        CHECK(trials[1].state == TrialState::waiting);
      }
    }
    const Finished rest = toy.host({"sweep", "resume", folder});
    INFO(rest.out << rest.err);
    CHECK(rest.status == 0);
    const std::vector<Trial> trials = trials_of(toy, name);
    REQUIRE(trials.size() == 2);
    CHECK(trials[1].state == TrialState::complete);
    CHECK(trials[1].value == whole[1].value);
    const std::string weights = "/checkpoints/latest/model.safetensors";
    CHECK(toy.read(last + weights) == toy.read("runs/whole/trials/0001" + weights));
    CHECK_THAT(toy.read(last + "/output.txt"), Contains("resumed from"));
  }
}

TEST_CASE("sweep here: a trial that ends the process is run again by the next start, whichever way trials run then", "[sweep]") {
  const Toy toy;
  const std::string before = R"(
local ffi = require('ffi')
ffi.cdef('int kill(int, int); int getpid();')
local hook = { name = 'h', on_step_end = function(ctx)
  local mark = io.open('died')
  if kf.config.train.seed == 13 and ctx.step == 2 and not mark then
    io.open('died', 'w'):close()
    ffi.C.kill(ffi.C.getpid(), 9)
  end
end }
)";
  const auto text = [&](const std::string& isolate) {
    return "kf = require('kf')" + before +
           sweep_script("space = { ['train.seed'] = kf.choice({ 7, 13, 8 }) }, method = 'grid'," + isolate,
                        std::string(kBase) + ", hooks = { hook }");
  };
  const std::string then = GENERATE(as<std::string>{}, " isolate = false", "");
  toy.write("s.lua", text(" isolate = false"));
  CHECK(toy.host({"s.lua"}).status == 128 + SIGKILL);
  REQUIRE(std::filesystem::exists(toy / "died"));
  toy.write("s.lua", text(then));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 3);
  CHECK(in_state(trials, TrialState::complete) == 3);
}

TEST_CASE("sweep here: several workers share one", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 6, isolate = false,"));
  kf::test::Options options = in_folder(toy);
  options.env = {{"KF_SWEEP_JOURNAL", GENERATE(as<std::string>{}, "wal", "rollback")}};
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < 3; ++i) {
    workers.push_back(std::make_unique<Process>(toy.command({"s.lua"}), options));
  }
  for (const auto& worker : workers) {
    const Finished done = worker->wait();
    INFO(done.out << done.err);
    CHECK(done.status == 0);
  }
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 6);
  std::set<double> points;
  for (const Trial& trial : trials) {
    CHECK(trial.state == TrialState::complete);
    points.insert(trial.parameters[0].stored);
  }
  CHECK(points.size() == 6);
}

TEST_CASE("sweep here: what one process cannot do is said at its line before anything runs", "[sweep]") {
  struct Case {
    std::string rest;
    int status;
    std::vector<std::string> words;
    std::string base = kBase;
  };
  const std::string sweep = std::string(kRandom) + "trials = 2,\n  ";
  const std::vector<Case> cases{
      {sweep + "isolate = 1", 3, {"s.lua:5:", "isolate: expected true or false, got number 1"}},
      {sweep + "isolate = false,\n  parallel = 2", 3, {"s.lua:6:", "parallel: 2 with isolate = false", "must be 1", "leave isolate out"}},
      {sweep + "ranks = 4,\n  isolate = false", 3, {"s.lua:5:", "ranks: 4 with isolate = false", "must be 1"}},
      {sweep + "isolate = false",
       2,
       {"s.lua:5:", "run.device = \"cuda\" takes the GPU", "set run.device = \"cpu\" in the base"},
       std::string(kBase) + ", run = { device = 'cuda' }"},
      {sweep + "isolated = false", 3, {"s.lua:5:", "unknown key 'isolated'; did you mean 'isolate'?"}},
  };
  const Toy toy;
  for (const Case& wrong : cases) {
    toy.write("s.lua", sweep_script(wrong.rest, wrong.base));
    for (const bool dry : {false, true}) {
      const Finished done = toy.host(dry ? std::vector<std::string>{"s.lua", "--dry-run"} : std::vector<std::string>{"s.lua"});
      INFO(wrong.rest << "\n" << done.out << done.err);
      CHECK(done.status == wrong.status);
      for (const std::string& word : wrong.words) {
        CHECK_THAT(done.err, Contains(word));
      }
    }
    CHECK_FALSE(std::filesystem::exists(toy / "runs"));
  }
}
