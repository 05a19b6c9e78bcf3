// kf.run: the job handed over, the result table, what is forbidden meanwhile.
#include "bindings/script/spec.h"
#include "fixture.h"

using namespace kf;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

RunResult example_result() {
  RunResult result;
  result.status = "complete";
  result.step = 60;
  result.tokens = 30720;
  result.loss = 2.5;
  result.eval = EvalResult{60, 2.75, 15.64, 2048};
  StepRow row;
  row.step = 60;
  row.loss = 2.5;
  row.extra = {{"mine", 7}};
  result.history = {row, EvalResult{60, 2.75, 15.64, 2048}};
  result.checkpoint = "runs/x/step_60";
  result.seconds = 1.5;
  return result;
}

}  // namespace

TEST_CASE("run: the job arrives with origins, and the result comes back as a table", "[run]") {
  std::vector<config::Node> jobs;
  ScriptHost host;
  host.run = [&](config::Node job) {
    jobs.push_back(std::move(job));
    return example_result();
  };
  ScriptFixture f(host);
  f.run(R"(local kf = require("kf")
local r = kf.run({
  extends = "base.toml",
  train = { seed = 5 },
})
assert(r.status == "complete" and r.steps == 60 and r.tokens == 30720 and r.loss == 2.5 and r.seconds == 1.5)
assert(r.eval.loss == 2.75 and r.eval.tokens == 2048 and r.checkpoint == "runs/x/step_60" and r.reason == nil)
assert(#r.history == 2 and r.history[1].step == 60 and r.history[1].loss == 2.5 and r.history[1].mine == 7)
assert(r.history[2].eval.loss == 2.75 and r.history[2].loss == nil)
)");
  REQUIRE(jobs.size() == 1);
  const config::Node* seed = jobs[0].table()->find("train")->table()->find("seed");
  CHECK(std::get<std::int64_t>(seed->value) == 5);
  CHECK(seed->origin.line == 4);
  CHECK(f.shown(seed->origin.file) == "recipe.lua");
}

TEST_CASE("run: hook tables serve their run only, fifty times over", "[run]") {
  ScriptHost host;
  ScriptFixture* fixture = nullptr;
  std::vector<std::string> said;
  host.run = [&](config::Node job) {
    CHECK(job.table()->find("hooks")->array()->size() == 1);
    const auto hook = fixture->hook("watch");
    HookContext context;
    Controls controls;
    context.controls = &controls;
    hook->call(Event::step_end, context);
    said.push_back(controls.stop.value_or(""));
    return RunResult{};
  };
  ScriptFixture f(host);
  fixture = &f;
  f.run(R"(local kf = require("kf")
for i = 1, 50 do
  kf.run({ hooks = { { name = "watch", on_step_end = function(ctx) ctx:stop("run " .. i) end } } })
end
)");
  CHECK(said.size() == 50);
  CHECK(said.back() == "run 50");
  CHECK(f.registries.hook.entries().empty());
}

TEST_CASE("run: a faulty job keeps its exit status and says which call it was", "[run]") {
  ScriptHost host;
  host.run = [](const config::Node&) -> RunResult { throw Error(Code::config, "2 problems in the job\n  a\n  b"); };
  ScriptFixture f(host);
  CHECK(f.error("local kf = require('kf')\n\nkf.run({})", Code::config) ==
        "2 problems in the job\n  a\n  b\n  from the host's run\n  from recipe.lua:3");
  f.run("local ok, message = pcall(require('kf').run, {}) assert(not ok and message:find('2 problems', 1, true))");
}

TEST_CASE("run: nothing is registered and no other run started from a callback", "[run]") {
  ScriptHost host;
  ScriptFixture* fixture = nullptr;
  host.run = [&](const config::Node&) {
    HookContext context;
    fixture->hook("h")->call(Event::step_end, context);
    return RunResult{};
  };
  const std::string body = GENERATE("kf.register.hook('other', { on_log = print })", "kf.run({})");
  ScriptFixture f(host);
  fixture = &f;
  const std::string text =
      f.error("local kf = require('kf')\nkf.register.hook('h', { on_step_end = function()\n  " + body + "\nend })\nkf.run({})\n");
  CAPTURE(text);
  CHECK(first_line(text) ==
        (body.starts_with("kf.run")
             ? "recipe.lua:3: kf.run: a run is on already; start the next one when kf.run has returned, not in a callback"
             : "recipe.lua:3: kf.register.hook: parts are registered while the script itself runs, before a run starts; "
               "here a run is on, in a callback"));
  CHECK(text.find("in recipe.lua:2: hook 'h', on_step_end at step 0") != std::string::npos);
  f.run("require('kf').register.hook('later', { on_log = print })");
}

TEST_CASE("run: a phase of the script that is opened while a run is on registers, and what is called behind it does not", "[run]") {
  ScriptHost host;
  ScriptFixture* fixture = nullptr;
  const std::string late = "require('kf').register.scheduler('late', function() return function() return 1 end end)";
  host.run = [&](const config::Node&) {
    execute_text(*fixture->script, late);
    CHECK(fixture->registries.scheduler.find("late") != nullptr);
    CHECK_THROWS_WITH(execute_text(*fixture->script, "os.exit()"), Catch::Contains("would lose what is not saved yet"));
    CHECK_THROWS_WITH(execute_text(*fixture->script, "require('kf').run({})"), Catch::Contains("a run is on already"));
    HookContext context;
    fixture->hook("h")->call(Event::step_end, context);
    return RunResult{};
  };
  ScriptFixture f(host);
  fixture = &f;
  const std::string text = f.error(
      "local kf = require('kf')\nkf.register.hook('h', { on_step_end = function()\n  kf.register.hook('x', { on_log = print })\nend })\n"
      "kf.run({})\n");
  CHECK(f.shown(f.script->code().at(0).path.string()) == "recipe.lua");  // the script is what it was
  CHECK(text.find("recipe.lua:3: kf.register.hook: parts are registered while the script itself runs") == 0);
}

TEST_CASE("run: an empty script serves a run that has none", "[run]") {
  Registries registries;
  Script script(registries, {}, {});
  CHECK(script.code().empty());
  CHECK(script.arguments().empty());
  CHECK(script.sweep() == nullptr);
  const Script::RunScope scope(script, config::Config());
  CHECK(scope.states().state().empty());
  execute_text(script, "assert(require('kf').config.train.seed == 42)");
}

TEST_CASE("run: after the script nothing is registered either", "[run]") {
  ScriptFixture f;
  f.run("local kf = require('kf')\nkf.register.hook('h', { on_step_end = function() kf.register.hook('x', { on_log = print }) end })");
  HookContext context;
  CHECK(kf::test::error_of(f, [&] {
          f.hook("h")->call(Event::step_end, context);
        }).find("parts are registered while the script itself runs") != std::string::npos);
}

TEST_CASE("run: wrong arguments are errors at the caller's line", "[run]") {
  ScriptHost host;
  host.run = [](const config::Node&) { return RunResult{}; };
  ScriptFixture f(host);
  CHECK(first_line(f.error("\nrequire('kf').run('base.toml')")) == "recipe.lua:2: kf.run: expected a table (a job), got 'base.toml'");
  ScriptFixture without;
  CHECK(first_line(without.error("require('kf').run({})")) == "recipe.lua:1: kf.run: nothing is trained here");
}
