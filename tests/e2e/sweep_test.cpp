// Sweeps through the real program: scripts, workers that die, what is left in the folder.

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>

#include "config/tree/json.h"
#include "e2e/sweeps.h"

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;
using kf::sweep::Trial;
using kf::sweep::TrialState;
using kf::test::Finished;
using kf::test::in_folder;
using kf::test::in_state;
using kf::test::Options;
using kf::test::Process;
using kf::test::sweep_script;
using kf::test::Toy;
using kf::test::trials_of;
using kf::test::wait_until;

namespace {

constexpr const char* kRandom = "space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) }, method = 'random', seed = 3,";

pid_t child_of(const Trial& trial) {
  const kf::config::Node* node = trial.attributes.find("process");
  return node != nullptr ? kf::sweep::Worker::from_node(*node).process.pid : -1;
}

/// A run that is caught in the middle, on whatever machine: once it has saved, it crawls until there is a file `go`.
std::string long_run(const Toy& toy) {
  return "train = { max_steps = 600 }, eval = { interval = 600, steps = 1 }, checkpoint = { interval = 50 },\n"
         "  hooks = { { name = 'crawls', on_step_end = function(ctx)\n"
         "    if ctx.step > 50 and not io.open('" +
         (toy / "go").string() +
         "') then\n"
         "      local ffi = require('ffi')\n      ffi.cdef('int usleep(unsigned);')\n      ffi.C.usleep(200000)\n    end end } }";
}

}  // namespace

TEST_CASE("sweep: trials run, a faulty one fails alone, and the folder holds all there is to know", "[sweep]") {
  const Toy toy;
  toy.write("s.lua",
            sweep_script("space = { ['model.dim'] = kf.choice({ 16, 33, 32 }), ['optimizer.lr'] = 1e-3 }, method = 'grid', parallel = 2,"));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("3 trials: 2 complete, 1 failed") && Contains("trial 1: fail") && Contains("eval.loss by model.dim"));
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 3);
  CHECK(trials[1].state == TrialState::fail);
  CHECK_THAT(trials[1].text("error"), Contains("33") && Contains("status 2"));
  CHECK(std::filesystem::exists(toy / "runs/s/trials/0000/code/s.lua"));
  CHECK_THAT(toy.read("runs/s/trials/0001/log.txt"), Contains("error ") && Contains("33"));
  CHECK_THAT(toy.read("runs/s/trials/0000/log.txt"), Contains("training complete") && Contains(": complete\n"));
  CHECK(trials[0].reports.size() == 2);
  CHECK(trials[0].reports.at(4) == *trials[0].value);
  CHECK_THAT(toy.read("runs/s/trials.csv"), Contains("0,COMPLETE,") && Contains("1,FAIL,,33"));
  CHECK(std::filesystem::exists(toy / "runs/s/plots/model.dim.svg"));
  CHECK_THAT(toy.host({"sweep", "show", "runs/s"}).out, Contains("2 complete, 1 failed"));

  const Finished best = toy.host({"sweep", "best", "runs/s"});
  toy.write("best.toml", best.out);
  const Finished alone = toy.host({"best.toml"});
  INFO(alone.err);
  CHECK(alone.status == 0);
  CHECK(std::filesystem::exists(toy / "runs/s-best/metrics.jsonl"));
  const Trial& winner = *kf::sweep::best_of(trials, false);
  CHECK_THAT(toy.read("runs/s-best/metrics.jsonl"), Contains(kf::config::json_number(*winner.value)));  // the same, bit for bit

  const Finished again = toy.host({"s.lua"});
  CHECK(again.status == 0);
  CHECK(trials_of(toy, "s").size() == 3);
  CHECK_THAT(toy.host({"sweep", "plot", "runs/s"}).out, Contains("plots/model.dim.svg"));
}

TEST_CASE("sweep: a grid of quniform has optuna's values, and a trial without a loss fails instead of being the best", "[sweep]") {
  const Toy toy;
  toy.write("s.lua",
            "local kf = require('kf')\n"
            "kf.register.transform('mask', function(a) return function(b)\n"
            "  if a.config.optimizer.weight_decay > 0.25 then b.labels:fill_(-100) end\n"
            "  return b\nend end)\n" +
                sweep_script("space = { ['optimizer.weight_decay'] = kf.quniform(0.1, 0.35, 0.1) }, method = 'grid', objective = 'loss',",
                             "train = { max_steps = 1 }, eval = { enabled = false }, data = { batch_transforms = { 'mask' } }"));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  const std::string csv = toy.read("runs/s/trials.csv");
  INFO(csv);
  CHECK_THAT(csv, Contains(",0.1,") && Contains(",0.2,") && Contains("2,FAIL,,0.3,"));
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 3);
  CHECK(trials[2].parameters.at(0).distribution.high == 0.3);
  CHECK(kf::sweep::best_of(trials, false)->number != 2);
}

TEST_CASE("sweep: more trials go on from the end; another space is another sweep; fresh starts over", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 1,"));
  REQUIRE(toy.host({"s.lua"}).status == 0);
  const std::vector<Trial> first = trials_of(toy, "s");
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 2,"));
  REQUIRE(toy.host({"s.lua"}).status == 0);
  const std::vector<Trial> both = trials_of(toy, "s");
  REQUIRE(both.size() == 2);
  CHECK(both[0].value == first[0].value);
  toy.write("s.lua", sweep_script("space = { ['optimizer.lr'] = kf.uniform(0.001, 1) }, method = 'random', trials = 2, seed = 3,"));
  const Finished other = toy.host({"s.lua"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Contains("loguniform(0.0001, 0.01)' then, 'uniform(0.001, 1)' now") && Contains("run.fresh"));
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 1,"));
  REQUIRE(toy.host({"s.lua", "--run.fresh=true"}).status == 0);
  CHECK(std::filesystem::exists(toy / "runs/s.1/study.db"));
  const std::vector<Trial> anew = trials_of(toy, "s");
  REQUIRE(anew.size() == 1);
  CHECK(anew[0].parameters[0].stored == first[0].parameters[0].stored);  // the same seed
  CHECK(anew[0].value == first[0].value);
}

TEST_CASE("sweep: one that was moved goes on where it is", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 1,"));
  REQUIRE(toy.host({"s.lua"}).status == 0);
  std::filesystem::rename(toy / "runs/s", toy / "runs/moved");
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 2,"));
  const Finished more = toy.host({"sweep", "resume", "runs/moved"});
  INFO(more.out << more.err);
  CHECK(more.status == 0);
  CHECK(trials_of(toy, "moved").size() == 2);
  CHECK_FALSE(std::filesystem::exists(toy / "runs/s"));
}

TEST_CASE("sweep: Ctrl-C lets trials save; they go on under their numbers", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 2, parallel = 2,", long_run(toy)));
  {
    Process sweep(toy.command({"s.lua"}), in_folder(toy));
    wait_until(toy, "s", [&](const std::vector<Trial>& trials) {
      return trials.size() == 2 && std::filesystem::exists(toy / "runs/s/trials/0000/checkpoints/latest");
    });
    sweep.signal(SIGINT);
    const Finished done = sweep.wait();
    INFO(done.out << done.err);
    CHECK(done.status == 75);
    CHECK_THAT(done.out, Contains("stopped: 2 trials: 2 waiting") && Contains("sweep resume runs/s` goes on"));
  }
  toy.write("go", "");
  const Finished rest = toy.host({"sweep", "resume", "runs/s"});
  INFO(rest.out << rest.err);
  CHECK(rest.status == 0);
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 2);
  CHECK(in_state(trials, TrialState::complete) == 2);
  CHECK_THAT(toy.read("runs/s/trials/0000/output.txt"), Contains("resumed from"));
}

TEST_CASE("sweep: a killed child is a failed trial until the sweep is started again; a killed parent loses and doubles nothing",
          "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 3, parallel = 2,", long_run(toy)));
  {
    Process sweep(toy.command({"s.lua"}), in_folder(toy));
    const std::vector<Trial> running = wait_until(toy, "s", [&](const std::vector<Trial>& trials) {
      return trials.size() >= 2 && std::all_of(trials.begin(), trials.end(), [](const Trial& t) { return child_of(t) > 0; });
    });
    REQUIRE(::kill(child_of(running[0]), SIGKILL) == 0);
    wait_until(toy, "s", [&](const std::vector<Trial>& trials) {
      return trials.size() == 3 && child_of(trials[2]) > 0 && std::filesystem::exists(toy / "runs/s/trials/0002/checkpoints/latest");
    });
    const std::vector<Trial> killed = trials_of(toy, "s");
    CHECK(killed[0].state == TrialState::fail);
    CHECK_THAT(killed[0].text("error"), Contains("signal 9"));
    sweep.signal(SIGKILL);
    sweep.wait();
  }
  toy.write("go", "");
  const Finished rest = toy.host({"s.lua"});
  INFO(rest.out << rest.err);
  CHECK(rest.status == 0);
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 3);
  CHECK(in_state(trials, TrialState::complete) == 3);
  CHECK_THAT(toy.read("runs/s/trials/0002/output.txt"), Contains("resumed from"));
}

TEST_CASE("sweep: four workers share one sweep and start at four different points", "[sweep]") {
  const Toy toy;
  const std::string method = GENERATE(as<std::string>{}, "random", "tpe");
  toy.write("s.lua",
            sweep_script("space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) }, method = '" + method + "', seed = 3, trials = 4,"));
  Options options = in_folder(toy);
  options.env = {{"KF_SWEEP_JOURNAL", method == "tpe" ? "rollback" : "wal"}};  // the first as on a disk that machines share
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<Process>(toy.command({"s.lua"}), options));
  }
  for (const auto& worker : workers) {
    const Finished done = worker->wait();
    INFO(done.out << done.err);
    CHECK(done.status == 0);
  }
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 4);
  std::set<double> points;
  for (const Trial& trial : trials) {
    CHECK(trial.state == TrialState::complete);
    points.insert(trial.parameters[0].stored);
  }
  CHECK(points.size() == 4);
}

TEST_CASE("sweep: a trial may be one of several processes, which come to what one does", "[sweep]") {
  const Toy toy;
  const auto write = [&](const std::string& name, int ranks) {
    toy.write(name, sweep_script(
                        std::string(kRandom) + " trials = 2, parallel = 2, prune = { min_resource = 2 }, ranks = " + std::to_string(ranks),
                        "train = { max_steps = 4, batch_size = " + std::to_string(4 / ranks) +
                            " }, eval = { interval = 2, steps = 2, batch_size = 4 }, distributed = { dp_shard = " + std::to_string(ranks) +
                            " }"));
  };
  write("one.lua", 1);
  write("two.lua", 2);
  CHECK_THAT(toy.host({"two.lua", "--dry-run"}).err, Contains("a trial is one of 2 processes"));
  for (const char* name : {"one.lua", "two.lua"}) {
    const Finished done = toy.host({name});
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
  }
  const std::vector<Trial> one = trials_of(toy, "one"), two = trials_of(toy, "two");
  REQUIRE(two.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(one[i].state != TrialState::fail);
    CHECK(two[i].state != TrialState::fail);
    CHECK(two[i].reports.at(2) == Approx(one[i].reports.at(2)).epsilon(1e-5));
  }
  CHECK(std::filesystem::exists(toy / "runs/two/trials/0000/log.rank-1.txt"));
}

TEST_CASE("sweep: functions of the script decide: values, rejection, objective, the next trial", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(R"(
  space = {},
  method = function(number, trials)
    if number == 3 then
      return nil
    end
    assert(#trials == number)
    return { ['optimizer.lr'] = number == 0 and 1e-3 or trials[number].params['optimizer.lr'] / 2, model = { dim = 16 } }
  end,
  adjust = function(c)
    c.scheduler.warmup_steps = c.model.dim / 4
  end,
  objective = function(result)
    return -result.steps - result.eval.loss
  end,
  direction = 'max',)"));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 3);
  CHECK(trials[2].parameter("optimizer.lr")->stored == 2.5e-4);
  CHECK(*trials[0].value < -4);
  CHECK_THAT(toy.read("runs/s/trials/0001/job.toml"), Contains("warmup_steps = 4") && Contains("dim = 16"));
  CHECK_THAT(toy.read("runs/s/trials.csv"), Contains("used scheduler.warmup_steps"));
}

TEST_CASE("sweep: conditional spaces, and bad trials are cut", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(R"(
  space = {
    optimizer = kf.choice({ { name = 'adamw', lr = kf.choice({ 1e-2, 1e-9 }) }, { name = 'lion', lr = 1e-9 } }),
    ['model.n_heads'] = function(c) return c.optimizer.name == 'lion' and kf.choice({ 2, 4 }) or nil end,
  },
  method = 'grid', prune = { min_resource = 2, reduction_factor = 2 },)"));
  const Finished done = toy.host({"s.lua"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::vector<Trial> trials = trials_of(toy, "s");
  REQUIRE(trials.size() == 4);  // adamw twice, lion with 2 and with 4 heads
  CHECK(trials[0].state == TrialState::complete);
  CHECK(in_state(trials, TrialState::pruned) == 3);
  CHECK(trials[1].reports.rbegin()->first == 2);
  CHECK(trials[1].value == trials[1].reports.at(2));
  CHECK(trials[3].parameter("model.n_heads") != nullptr);
  CHECK(trials[0].parameter("model.n_heads") == nullptr);
  CHECK_THAT(done.out, Contains("pruned") && Contains("at step 2"));
}

TEST_CASE("sweep: what is wrong is said with its line before anything runs", "[sweep]") {
  struct Case {
    const char* rest;
    int status;
    std::vector<std::string> words;
  };
  const std::string lr = "space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) },";
  const std::vector<Case> cases{
      {"spaces = {}, method = 'random', trials = 1", 3, {"s.lua:4:", "unknown key 'spaces'; did you mean 'space'?"}},
      {"space = { ['optimizer.lrr'] = kf.uniform(0, 1) }, method = 'random', trials = 1",
       2,
       {"s.lua:4:", "unknown setting 'optimizer.lrr'", "did you mean 'optimizer.lr'?"}},
      {"space = { width = kf.choice({ { ['model.dim'] = 32 }, { ['model.n_layers'] = 1 } }) }, method = 'grid'",
       2,
       {"s.lua:4:", "unknown setting 'width.model.dim'", "stands in the space without a name: kf.choice({...})"}},
      {"space = { ['optimizer.lr'] = { 0.1, 0.01 } }, method = 'grid'", 2, {"s.lua:4:", "kf.choice({ ... }) tries values one by one"}},
      {"space = { ['optimizer.name'] = kf.choice({ 'adamw', 'loin' }) }, method = 'grid'", 2, {"s.lua:4:", "'loin'", "lion"}},
      {"space = { ['model.dim'] = kf.uniform(32, 64) }, method = 'random', trials = 1", 2, {"s.lua:4:", "model.dim", "integer"}},
      {"space = { ['optimizer.lr'] = kf.loguniform(1e-2, 1e-4) }, method = 'random', trials = 1",
       3,
       {"s.lua:4:", "low (0.01) is above high"}},
      {"space = { ['optimizer.lr'] = kf.loguniform(0, 1) }, method = 'random', trials = 1", 3, {"s.lua:4:", "above 0"}},
      {"space = { ['optimizer.lr'] = kf.choice({}) }, method = 'grid'", 3, {"s.lua:4:", "kf.choice: the list is empty"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'grid'", 2, {"s.lua:", "a grid needs values to count", "optimizer.lr"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'random', trials = 0",
       3,
       {"s.lua:4:", "trials: must be a whole number from 1"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'random'", 3, {"s.lua:", "trials is missing"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'radnom', trials = 1", 3, {"s.lua:4:", "did you mean 'random'?"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'random', trials = 1, objective = 'eval.los'",
       3,
       {"s.lua:4:", "did you mean 'eval.loss'?"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1) }, method = 'random', trials = 1, direction = 'up'",
       3,
       {"s.lua:4:", "\"min\" or \"max\""}},
      {"space = { ['optimizer.lr'] = kf.uniform(0.001, 1) }, method = 'random', trials = 1, adjust = function(c) return 1 end",
       3,
       {"s.lua:4:", "adjust", "number 1"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0.001, 1) }, method = 'random', trials = 1, adjust = function(c) c.nothing.x = 1 end",
       3,
       {"s.lua:4:", "nothing"}},
      {"space = { ['optimizer.lr'] = kf.uniform(0, 1), optimizer = { lr = 1 } }, method = 'random', trials = 1",
       3,
       {"'optimizer.lr' stands there twice"}},
      {"space = {}, method = 'random', trials = 1", 3, {"nothing to vary"}},
  };
  const Toy toy;
  for (const Case& wrong : cases) {
    toy.write("s.lua", sweep_script(wrong.rest));
    const Finished done = toy.host({"s.lua"});
    INFO(wrong.rest << "\n" << done.out << done.err);
    CHECK(done.status == wrong.status);
    for (const std::string& word : wrong.words) {
      CHECK_THAT(done.err, Contains(word));
    }
    CHECK_FALSE(std::filesystem::exists(toy / "runs"));
  }
  toy.write("s.lua", sweep_script(lr + "method = 'random', trials = 1", "eval = { enabled = false }"));
  CHECK_THAT(toy.host({"s.lua"}).err, Contains("eval.enabled is false"));
  toy.write("s.lua", sweep_script(lr + "method = 'random', trials = 1"));
  const Finished both = toy.host({"s.lua", "--optimizer.lr=1"});
  CHECK(both.status == 2);
  CHECK_THAT(both.err, Contains("--optimizer.lr") && Contains("in the space of the sweep"));
}

TEST_CASE("sweep: when no trial completes the exit status says so", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script("space = { ['model.dim'] = kf.choice({ 31, 33 }) }, method = 'grid'"));
  const Finished done = toy.host({"s.lua"});
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("no trial completed"));
}

TEST_CASE("sweep: a dry run checks it, says space and trials, and leaves nothing behind", "[sweep]") {
  const Toy toy;
  toy.write("s.lua", sweep_script(std::string(kRandom) + "trials = 6, parallel = 2"));
  const Finished done = toy.host({"s.lua", "--dry-run"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("random, 6 trials, 2 at a time") && Contains("optimizer.lr = loguniform(0.0001, 0.01)"));
  CHECK_THAT(done.out, Contains("the first trial") && Contains("dry run: nothing is wrong with s.lua"));
  CHECK(!std::filesystem::exists(toy / "runs"));
  toy.write("bad.lua", sweep_script("space = { ['optimizer.lrr'] = kf.uniform(0, 1) }, method = 'random', trials = 2"));
  const Finished bad = toy.host({"bad.lua", "--dry-run"});
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, Contains("optimizer.lr"));
  const Finished other = toy.host({"sweep", "s.lua", "--dry-run"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Contains("started like any other: `kf-host s.lua --dry-run`"));
}

TEST_CASE("sweep: the command's own words", "[sweep]") {
  const Toy toy;
  CHECK(toy.host({"sweep", "--help"}).status == 0);
  CHECK_THAT(toy.host({"sweep", "--help"}).out, Contains("resume DIR"));
  const Finished typo = toy.host({"sweep", "shwo", "runs/s"});
  CHECK(typo.status == 2);
  CHECK_THAT(typo.err, Contains("did you mean 'show'?"));
  CHECK_THAT(toy.host({"sweep", "show", "runs/none"}).err, Contains("is no sweep's folder"));
  CHECK_THAT(toy.host({"toy.toml", "--sweep-trial=x#1"}).err, Contains("--sweep-trial"));
}
