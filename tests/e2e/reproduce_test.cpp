// A run made again from its folder, and its bundle.

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "e2e/live_run.h"
#include "e2e/script_run.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::test::entries;
using kf::test::Finished;
using kf::test::job;
using kf::test::Live;
using kf::test::Options;
using kf::test::ScriptRun;
using kf::test::Toy;
using nlohmann::json;

namespace {

json record(const Toy& toy, const std::string& run) { return json::parse(toy.read("runs/" + run + "/run.json")); }

void check_equal(const Finished& done, const std::string& rows) {
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("equal to the bit: " + rows));
}

}  // namespace

TEST_CASE("reproduce: a run of a job is the same once more, from its folder alone", "[reproduce]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=first", "--train.max_steps=5", "--metrics.sinks=[\"jsonl\", \"tensorboard\"]",
                     "--metrics.histogram_interval=5"})
              .status == 0);
  const json start = record(toy, "first")["starts"][0];
  for (const char* key : {"command", "folder", "version", "commit", "torch", "host", "processor", "instructions", "cores", "memory",
                          "threads", "ranks", "data"}) {
    CAPTURE(key);
    CHECK(start.contains(key));
  }
  CHECK(!toy.read("runs/first/data.fingerprint").empty());
  fs::remove(toy / "toy.toml");
  const Finished done = toy.host({"reproduce", "first"});
  check_equal(done, "6 rows up to step 5 (loss, ce, grad_norm, lr, eval.loss)");
  CHECK_THAT(done.err, Contains("data, program and machine are as they were in ") && !Contains("has no effect"));
  CHECK(fs::exists(toy / "runs/first.reproduced/run.json"));
  check_equal(toy.host({"reproduce", "first", "--steps", "2", "--dir", "again"}), "2 rows up to step 2");
  CHECK(toy.series("first.reproduced", "loss") == toy.series("first", "loss"));
}

TEST_CASE("reproduce: other data and other settings are named, and where the numbers part", "[reproduce]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=first", "--train.max_steps=4"}).status == 0);
  const Finished other = toy.host({"reproduce", "first", "--optimizer.lr=1e-2", "--dir=lr"});
  INFO(other.out << other.err);
  CHECK(other.status == 1);
  CHECK_THAT(other.out, Contains("they part at step 2: lr was 0.0015 in first and is 0.005 in lr") || Contains("they part at step"));
  std::ofstream(toy / "text/a.txt", std::ios::app) << "and more of it, at the end";
  const Finished data = toy.host({"reproduce", "first", "--dir=data"});
  INFO(data.out << data.err);
  CHECK_THAT(data.err, Contains("a.txt"));
  CHECK_THAT(toy.host({"reproduce", "first", "--dir=data"}).err, Contains("something is there already"));
  CHECK_THAT(toy.host({"reproduce", "text"}).err, Contains("is no folder of a run"));
}

TEST_CASE("reproduce: a run that went on with more steps is made part by part", "[reproduce]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=long", "--train.max_steps=4"}).status == 0);
  REQUIRE(toy.train({"--run.name=long", "--train.max_steps=7"}).status == 0);
  CHECK(toy.read("runs/long/jobs/1.toml").find("max_steps = 4\n") != std::string::npos);
  const Finished done = toy.host({"reproduce", "long"});
  check_equal(done, "10 rows up to step 7");
  CHECK_THAT(done.err, Contains("steps behind 4: settings of start 2"));
}

TEST_CASE("reproduce: the second run of a script, whose hooks have a state", "[reproduce]") {
  const ScriptRun run(R"(
local seen = 0
kf.register.scheduler("counted", function(a)
  local mine = seen
  return function(step) return 1 / (1 + mine + step) end
end)
local function go(name)
  return kf.run{ extends = "toy.toml", run = { name = name }, train = { max_steps = 3 }, scheduler = { name = "counted" },
    hooks = { { on_step_end = function(ctx) seen = seen + 1; ctx:log({ seen = seen }) end } } }
end
go("one")
go(kf.args[1])
)");
  REQUIRE(run.go({"--optimizer.lr=2e-3", "--", "two"}).status == 0);
  CHECK(record(run.toy, "two")["starts"][0]["call"] == 2);
  run.toy.write("s.lua", "error('not this one')");
  const Finished done = run.toy.host({"reproduce", "two"});
  check_equal(done, "4 rows up to step 3");
  CHECK(run.toy.series("two.reproduced", "seen") == run.toy.series("two", "seen"));
  CHECK(fs::exists(run.toy / "runs/two.reproduced-call-1/run.json"));
}

TEST_CASE("reproduce: a run of two ranks is made by two", "[reproduce]") {
  const Toy toy;
  REQUIRE(toy.host({"--nproc", "2", "toy.toml", "--run.name=pair", "--train.max_steps=3", "--eval.enabled=false"}).status == 0);
  CHECK(record(toy, "pair")["starts"][0]["ranks"] == 2);
  check_equal(toy.host({"reproduce", "pair"}), "3 rows up to step 3");
}

TEST_CASE("reproduce: an error that ended the run is part of it", "[reproduce]") {
  const ScriptRun run(
      job("run = { name = 'bad' }, train = { max_steps = 5 }, hooks = { { on_step_end = function(ctx) "
          "if ctx.step == 3 then error('out of luck') end end } }"));
  REQUIRE(run.go().status == 3);
  const Finished done = run.toy.host({"reproduce", "bad"});
  check_equal(done, "");
  CHECK_THAT(done.err, Contains("the run failed, and so does this one: ") && Contains("out of luck"));
}

TEST_CASE("reproduce: what was said to the run while it trained is said again, behind the same steps", "[reproduce]") {
  const Toy toy;
  Live run(toy);
  run.ask("ctx:set_lr_scale(0.5)");
  run.ask("for n, w in ctx:parameters('*norm*') do w:fill_(0.75) end");
  REQUIRE(run.stop().status == 0);
  const Finished done = toy.host({"reproduce", "toy"});
  check_equal(done, "");
  CHECK(entries(toy, "toy.reproduced") == entries(toy, "toy"));
  CHECK(toy.series("toy.reproduced", "loss") == toy.series("toy", "loss"));
}

TEST_CASE("reproduce: hooks that were read again are read again, as they were", "[reproduce]") {
  const auto hooks = [](const std::string& scale) {
    return job("metrics = { log_interval = 1 }, hooks = { { name = 'mine', on_step_end = function(ctx) ctx:log({ mine = " + scale +
               " * ctx.step }) end } }");
  };
  const ScriptRun script(hooks("1"));
  Live run(script.toy, {"s.lua"}, "s");
  script.write(hooks("-1"));
  CHECK(run.reload().output == "hooks: mine\n");
  REQUIRE(run.stop().status == 0);
  script.write("error('not this one')");
  check_equal(script.toy.host({"reproduce", "s"}), "");
  CHECK(script.toy.series("s.reproduced", "mine") == script.toy.series("s", "mine"));
}

TEST_CASE("reproduce: a trial of a sweep is made from its folder alone", "[reproduce]") {
  const ScriptRun sweep(
      "return kf.sweep({ base = { extends = 'toy.toml', train = { max_steps = 4 }, eval = { interval = 2, steps = 1 },\n"
      "  hooks = { { on_step_end = function(ctx) ctx:log({ mine = ctx.step }) end } } },\n"
      "  space = { ['optimizer.lr'] = kf.choice({ 1e-3, 3e-3 }) }, method = 'grid' })\n");
  const Finished swept = sweep.go();
  INFO(swept.out << swept.err);
  REQUIRE(swept.status == 0);
  sweep.toy.write("s.lua", "error('not this one')");
  const Finished done = sweep.toy.host({"reproduce", "runs/s/trials/0001", "--dir", "again"});
  check_equal(done, "6 rows up to step 4");
  CHECK(sweep.toy.read("again/metrics.jsonl").find("\"mine\"") != std::string::npos);
}

TEST_CASE("reproduce: a bundle has what is needed, and no data", "[reproduce]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=first", "--train.max_steps=3"}).status == 0);
  const Finished made = toy.host({"bundle", "first", "first.tar.gz"});
  INFO(made.out << made.err);
  CHECK(made.status == 0);
  fs::remove_all(toy / "runs");
  Options options;
  options.cwd = toy.folder();
  REQUIRE(kf::test::run({"tar", "-xf", "first.tar.gz"}, options).status == 0);
  CHECK(!fs::exists(toy / "first/checkpoints"));
  check_equal(toy.host({"reproduce", "first"}), "4 rows up to step 3");
  CHECK(toy.host({"bundle", "first", "first.tar.gz"}).status == 2);
  CHECK_THAT(toy.host({"reproduce", "first.tar.gz"}).err, Contains("is no folder of a run") || Contains("unpack it first"));
}
