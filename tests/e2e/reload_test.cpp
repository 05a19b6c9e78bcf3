// kf-host reload: the hooks of a script, read again while it trains.

#include <catch2/catch.hpp>

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "e2e/live_run.h"
#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A hook that counts the steps it saw, from wherever it goes on, and logs `sign` times that.
std::string counting(const std::string& sign, const std::string& more = "", const std::string& name = "counter") {
  return "local count = 0\n" +
         job("metrics = { log_interval = 1 }, " + more + " hooks = { { name = '" + name +
             "', on_step_end = function(ctx) count = count + 1 ctx:log({ seen = " + sign +
             " * count }) end, state = function() return { count = count } end, load = function(s) count = s.count end } }");
}

double at(const Toy& toy, int step) { return std::stod(toy.series("s", "seen").at(step)); }

}  // namespace

TEST_CASE("reload: a changed hook goes on from its state, what is wrong leaves the old one", "[reload]") {
  const ScriptRun script(counting("1"));
  const Toy& toy = script.toy;
  Live run(toy, {"s.lua"}, "s");
  const int first = std::stoi(run.ask("return ctx.step"));
  CHECK(run.reload().output == "hooks: counter\n");  // nothing has changed

  script.write(counting("-1"));
  CHECK(run.reload().output == "hooks: counter\n");
  const int second = std::stoi(run.ask("return ctx.step"));

  script.write("return {");
  CHECK_THAT(run.reload().error, Contains("s.lua:2:"));
  script.write("error('broken')");
  CHECK_THAT(run.reload().error, Contains("broken"));
  script.write("local x = 1");
  CHECK_THAT(run.reload().error, Contains("returns no job"));
  script.write(counting("1", "model = { dim = 64 }, optimizer = { lr = 1e-2 },"));
  CHECK_THAT(run.reload().error, Contains("model.dim: 32 -> 64") && Contains("optimizer.lr: 0.003 -> 0.01"));
  script.write("local count = 0\n" + job("hooks = { { name = 'counter', on_train_begin = function() error('not now') end } }"));
  CHECK_THAT(run.reload().error, Contains("not now"));
  script.write(job("hooks = { { name = 'counter', on_log = print, state = function() end, load = function() error('no state') end } }"));
  CHECK_THAT(run.reload().error, Contains("no state"));
  script.write(job("hooks = { { name = 'counter', on_log = print, state = function() return { print } end, load = function() end } }"));
  CHECK_THAT(run.reload().error, Contains("hook 'counter'") && Contains("function"));
  script.write("os.exit(0)");
  CHECK_THAT(run.reload().error, Contains("s.lua:2: os.exit would end the run"));
  const int third = std::stoi(run.ask("return ctx.step"));

  script.write("kf.register.loss('mine', function() return function() end end)\n" + counting("1", "", "other"));
  CHECK(run.reload().output == "hooks: other\nas the run began with them: loss 'mine'\n");
  const int last = std::stoi(run.ask("return ctx.step"));
  const Finished done = run.stop();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(at(toy, first) == first);
  CHECK(at(toy, second) == -second);
  CHECK(at(toy, third) == -third);
  CHECK(at(toy, last) > 0);
  CHECK(at(toy, last) < last);  // another name: it began by itself
  CHECK(entries(toy, "s") == 4);
  std::map<int, std::string> kept;  // the code of each reload that was taken, by its step
  for (const auto& entry : std::filesystem::directory_iterator(toy / "runs/s/reloads")) {
    const std::string name = entry.path().filename().string();
    kept[std::stoi(name.substr(5))] = toy.read("runs/s/reloads/" + name + "/s.lua");
  }
  REQUIRE(kept.size() == 3);
  CHECK(std::next(kept.begin())->second == "local kf = require('kf')\n" + counting("-1"));

  script.write(counting("1"));
  std::vector<std::string> words{"s.lua", "--run.name=again", "--run.steering=runs/s/steering.jsonl"};
  words.insert(words.end(), Live::endless().begin(), Live::endless().end());
  const Finished again = toy.host(words);
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(toy.series("again", "seen") == toy.series("s", "seen"));
}

TEST_CASE("reload: a script without an end is given up when nobody waits for it", "[reload]") {
  const ScriptRun script(counting("1"));
  Live run(script.toy, {"s.lua"}, "s");
  script.write("io.open('began', 'w'):close()\nwhile true do end");
  Options options;
  options.cwd = script.toy.folder();
  Process asker(script.toy.command({"reload", "runs/s"}), options);
  while (!fs::exists(script.toy / "began")) {
    ::usleep(1000);
  }
  asker.signal(SIGKILL);
  asker.wait();
  CHECK(run.process().wait_for("who asked has gone away"));
  const int step = std::stoi(run.ask("return ctx.step"));
  CHECK(run.stop().status == 0);
  CHECK(at(script.toy, step) == step);
}

TEST_CASE("reload: a job without a script has no hooks to read, and commands say what became of it", "[reload]") {
  const ScriptRun script(counting("1"));
  {
    Live run(script.toy);
    CHECK_THAT(run.reload().error, Contains("no script"));
    CHECK(run.stop().status == 0);
  }
  Live run(script.toy, {"s.lua"}, "s");
  script.write(counting("2"));
  const Finished said = script.toy.host({"reload", "runs/s"});
  CHECK(said.status == 0);
  CHECK(said.out == "hooks: counter\n");
  script.write("return {");
  const Finished failed = script.toy.host({"reload", "runs/s"});
  CHECK(failed.status == 3);
  CHECK_THAT(failed.err, Contains("s.lua:2:"));
  CHECK(script.toy.host({"reload"}).status == 2);
  CHECK(run.stop().status == 0);
}

TEST_CASE("reload: hooks of kf.run, and of the first run of a script alone", "[reload]") {
  const auto calling = [](const std::string& sign) {
    return "local function train(name, body) kf.run { extends = 'toy.toml', run = { name = name }, hooks = { { name = 'h', on_step_end = "
           "body } } } end\nif not io.open('first') then train('short', function(ctx) ctx:stop() end) end\n"
           "train('s', function(ctx) ctx:log({ seen = " +
           sign + " }) end)\n";
  };
  const ScriptRun script(calling("1"));
  script.toy.write("first", "");
  {
    Live run(script.toy, {"s.lua"}, "s");
    script.write(calling("-1"));
    CHECK(run.reload().output == "hooks: h\n");
    const int step = std::stoi(run.ask("return ctx.step"));
    CHECK(run.stop().status == 0);
    CHECK(at(script.toy, step) == -1);
  }
  std::filesystem::remove(script.toy / "first");
  std::filesystem::remove_all(script.toy / "runs/s");
  Live second(script.toy, {"s.lua"}, "s");
  CHECK_THAT(second.reload().error, Contains("this is another one"));
  CHECK(second.stop().status == 0);
}

TEST_CASE("reload: a run that goes on from its folder reads the copy there", "[reload]") {
  const ScriptRun script(counting("1"));
  {
    Live run(script.toy, {"s.lua"}, "s");
    run.ask("ctx:request_save()");
    run.process().signal(SIGKILL);
    run.process().wait();
  }
  script.write("return {");
  Live on(script.toy, {"runs/s"}, "s");
  CHECK(on.reload().output == "hooks: counter\n");
  const int step = std::stoi(on.ask("return ctx.step"));
  CHECK(on.stop().status == 0);
  CHECK(at(script.toy, step) == step);
}

TEST_CASE("reload: on_change looks at the script and its modules", "[reload]") {
  const ScriptRun script("local sign = require('sign')\n" + counting("sign", "run = { reload = 'on_change' },"));
  script.toy.write("sign.lua", "return 1\n");
  Live run(script.toy, {"s.lua"}, "s");
  script.toy.write("sign.lua", "return -1\n");
  CHECK(run.process().wait_for("hooks are read again"));
  const int step = std::stoi(run.ask("return ctx.step"));
  script.toy.write("sign.lua", "return )\n");
  CHECK(run.process().wait_for("sign.lua:1:"));
  CHECK(run.stop().status == 0);
  CHECK(at(script.toy, step) == -step);
}

TEST_CASE("reload: all ranks take the new hooks", "[reload]") {
  const ScriptRun script(counting("1"));
  Live run(script.toy, {"--nproc", "2", "s.lua", "--train.batch_size=2", "--eval.enabled=false"}, "s");
  script.write(counting("-1"));
  CHECK(run.reload().output == "hooks: counter\n");
  const int step = std::stoi(run.ask("return ctx.step"));
  script.write("if kf.dist.rank == 1 then error('not here') end\n" + counting("1"));
  CHECK_THAT(run.reload().error, Contains("rank 1: ") && Contains("not here"));
  CHECK(run.stop().status == 0);
  CHECK(at(script.toy, step) == -step);
}
