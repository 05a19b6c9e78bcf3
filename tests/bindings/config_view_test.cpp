// a.config, a.options and kf.config: readable, strict, read-only.
#include "fixture.h"

using namespace kf;
using kf::test::error_of;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

/// What happens in a factory with this body.
std::string factory_error(const std::string& body, ScriptFixture& f) {
  f.run("local kf = require('kf')\nkf.register.scheduler('s', function(a)\n" + body + "\nreturn function() return 1 end end)");
  return first_line(error_of(f, [&] { f.schedule("s"); }));
}

std::string factory_error(const std::string& body) {
  ScriptFixture f;
  return factory_error(body, f);
}

}  // namespace

TEST_CASE("config view: values arrive with their types", "[view]") {
  ScriptFixture f;
  f.config.train.max_steps = 77;
  f.config.optimizer.lr = 0.25;
  f.config.hooks = {"a", "b"};
  f.config.parts["scheduler.s"]["floor"] = config::Node(0.5);
  f.config.parts["scheduler.s"]["list"] = config::Node(config::Array{config::Node(std::int64_t{3})});
  f.run(R"(local kf = require("kf")
kf.register.scheduler("s", function(a)
  assert(a.config.train.max_steps == 77 and a.config.optimizer.lr == 0.25)
  assert(a.config.model.n_kv_heads == nil)
  assert(a.config.optimizer.betas[1] == 0.9 and #a.config.optimizer.betas == 2)
  assert(#a.config.hooks == 2 and a.config.hooks[2] == "b")
  assert(a.config.model.tie_embeddings == false)
  assert(a.options.floor == 0.5 and #a.options.list == 1 and a.options.list[1] == 3)
  assert(a.config.scheduler.s.floor == 0.5)
  assert(a.max_steps == 100)
  assert(tostring(a.config.run):find("config.run (read-only): name", 1, true))
  return function() return 1 end
end)
)");
  CHECK(f.schedule("s")->factor(0) == 1.0);
}

TEST_CASE("config view: assigning and misspelling are errors at the script's line", "[view]") {
  CHECK(factory_error("a.config.train.max_steps = 5") ==
        "recipe.lua:3: config.train is read-only: 'max_steps' is set before the run starts, in the table that the script returns or gives "
        "to kf.run");
  CHECK(factory_error("a.config.train = {}").starts_with("recipe.lua:3: config is read-only: 'train' "));
  CHECK(factory_error("local x = a.config.train.max_step") ==
        "recipe.lua:3: config.train has no field 'max_step'; did you mean 'max_steps'?");
  CHECK(factory_error("local x = a.config.trian") == "recipe.lua:3: config has no field 'trian'; did you mean 'train'?");
  CHECK(factory_error("local x = a.options.floor") == "recipe.lua:3: options has no field 'floor'; there are none");
}

TEST_CASE("config view: an integer that Lua cannot hold is an error, not another number", "[view]") {
  ScriptFixture f;
  f.config.train.seed = 9007199254740993;
  CHECK(factory_error("local x = a.config.train.seed", f) ==
        "recipe.lua:3: config.train.seed (9007199254740993) is not exact as a Lua number, which ends at 2^53");
}

TEST_CASE("config view: kf.config shows the run that is on, and nothing else", "[view]") {
  ScriptFixture f;
  f.run(
      "local kf = require('kf')\nkf.register.hook('h', { on_step_end = function(ctx) ctx:stop(kf.config and kf.config.run.name or 'none') "
      "end })");
  const auto hook = f.hook("h");
  Controls controls;
  HookContext context;
  context.controls = &controls;
  hook->call(Event::step_end, context);
  CHECK(controls.stop == "none");
  {
    f.config.run.name = "first";
    const Script::RunScope scope(*f.script, f.config);
    hook->call(Event::step_end, context);
    CHECK(controls.stop == "first");
  }
  hook->call(Event::step_end, context);
  CHECK(controls.stop == "none");
}
