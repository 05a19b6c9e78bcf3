// The table that a script returns, as a layer of the job.
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "fixture.h"

using namespace kf;
using kf::test::ScriptFixture;

namespace {

const config::Node& value_at(const config::Node& node, const std::vector<std::string>& path) {
  const config::Node* here = &node;
  for (const std::string& key : path) {
    REQUIRE(here->table());
    here = here->table()->find(key);
    REQUIRE(here);
  }
  return *here;
}

}  // namespace

TEST_CASE("recipe: values keep their kinds and know their lines", "[recipe]") {
  ScriptFixture f;
  const auto node = f.run(R"(return {
  extends = "base.toml",
  optimizer = { lr = 6e-4, betas = { 0.9, 0.95 } },
  train = { max_steps = 200, compile_model = false },
  data = { datasets = {} },
  big = 2^53, past = 2^60,
}
)");
  REQUIRE(node);
  CHECK(std::get<std::string>(value_at(*node, {"extends"}).value) == "base.toml");
  CHECK(std::get<double>(value_at(*node, {"optimizer", "lr"}).value) == 6e-4);
  CHECK(std::get<std::int64_t>(value_at(*node, {"train", "max_steps"}).value) == 200);
  CHECK(std::get<bool>(value_at(*node, {"train", "compile_model"}).value) == false);
  CHECK(value_at(*node, {"optimizer", "betas"}).array()->size() == 2);
  CHECK(value_at(*node, {"data", "datasets"}).table()->empty());
  CHECK(std::get<std::int64_t>(value_at(*node, {"big"}).value) == 9007199254740992);
  CHECK(std::holds_alternative<double>(value_at(*node, {"past"}).value));
  const config::Origin& origin = value_at(*node, {"train", "max_steps"}).origin;
  CHECK(origin.kind == config::Origin::Kind::recipe);
  CHECK(f.shown(origin.file) == "recipe.lua");
  CHECK(origin.line == 4);
  CHECK(origin.column == 25);
  CHECK(origin.text == "  train = { max_steps = 200, compile_model = false },");
  CHECK(value_at(*node, {"train", "max_steps"}).key_origin.column == 13);
}

TEST_CASE("recipe: a computed value has the line of the table around it", "[recipe]") {
  ScriptFixture f;
  const auto node = f.run("local o = {}\no[\"l\" .. \"r\"] = 1\nreturn {\n  optimizer = o,\n}\n");
  CHECK(value_at(*node, {"optimizer", "lr"}).origin.line == 4);
  const auto whole = f.run("local t = {}\nt[\"tr\" .. \"ain\"] = { seed = 1 }\n\nreturn t\n");
  CHECK(value_at(*whole, {"train"}).origin.line == 4);
}

TEST_CASE("recipe: what has no place in a job is named by its path and line", "[recipe]") {
  ScriptFixture f;
  CHECK(f.error("return {\n  train = {\n    steps = print,\n  },\n}") ==
        "recipe.lua:3: the job: 'train.steps' is a function; only booleans, numbers, strings and tables have a place there");
  CHECK(f.error("return {\n  train = { 1, x = 2 },\n}") ==
        "recipe.lua:2: the job: 'train' mixes names and list items; a table holds either names or the items 1, 2, 3, ...");
  CHECK(f.error("\nreturn { 1, 2 }") == "recipe.lua:2: a job is a table of sections, { model = { ... }, ... }, not a list");
}

TEST_CASE("recipe: hook tables are registered under their name or their place, with the line of their functions", "[recipe]") {
  ScriptFixture f;
  const auto node = f.run(R"(local kf = require("kf")
kf.register.hook("named", { on_log = print })
kf.register.hook("plain", { on_log = print })
return {
  hooks = {
    { every = 5, on_step_end = function(ctx) end },
    "plain",
    { "named", factor = 2.5 },
    {
      name = "judge",
      on_eval_end = function(ctx) end,
    },
  },
}
)");
  std::vector<std::string> names;
  for (const config::Node& name : *value_at(*node, {"hooks"}).array()) {
    names.push_back(std::get<std::string>(name.value));
  }
  CHECK(names == std::vector<std::string>{"hook 1", "plain", "named", "judge"});
  CHECK(std::get<double>(value_at(*node, {"hook", "named", "factor"}).value) == 2.5);
  CHECK(f.shown(f.registries.hook.get("hook 1").info.origin) == "recipe.lua:6");
  CHECK(f.shown(f.registries.hook.get("judge").info.origin) == "recipe.lua:11");
  CHECK(f.hook("hook 1")->wants(Event::step_end, 5));
  CHECK(f.hook("judge")->name() == "judge");
}

TEST_CASE("recipe: wrong entries of hooks are errors of the script", "[recipe]") {
  ScriptFixture f;
  CHECK(f.error("\nreturn { hooks = { 5 } }") ==
        "recipe.lua:2: hooks[1]: a hook is a table, a name, or { name, field = value }; got number 5");
  CHECK(f.error("return { hooks = { { on_stepend = function() end } } }") ==
        "recipe.lua:1: hook 'hook 1': no event 'on_stepend'; did you mean 'on_step_end'?");
  CHECK(f.error("return { hooks = { 'a', 'a' } }") == "recipe.lua:1: hooks[2]: the hook 'a' is listed twice");
  CHECK(f.error("return { hooks = { on_log = print } }").starts_with("recipe.lua:1: hooks: a list of hooks is wanted"));
  CHECK(f.error("return { hooks = { { 'a', x = 1 } }, hook = { a = { x = 2 } } }") ==
        "recipe.lua:1: hooks[1]: the fields of 'a' are given here and in hook.a; keep one");
  CHECK(f.registries.hook.entries().empty());
}

TEST_CASE("recipe: as a layer it lies above the file it extends and below the command line", "[recipe]") {
  ScriptFixture f;
  f.registries = native_registries();
  f.folder.write("base.toml", "[train]\nmax_steps = 7\nseed = 3\n[optimizer]\nlr = 0.5\n");
  config::Request request;
  request.recipe = f.run(R"(local kf = require("kf")
kf.register.scheduler("half", function() return function() return 0.5 end end, { fields = { { "floor", "float", default = 0.25, min = 0 } } })
return {
  extends = "base.toml",
  train = { max_steps = 9 },
  optimizer = { lr = 0.125 },
  scheduler = { name = "half" },
  hooks = { { on_log = print } },
  data = { datasets = {} },
}
)");
  request.overrides = {"--optimizer.lr=0.0625"};
  request.files_must_exist = false;
  const config::Loaded loaded = config::load(request, f.registries.catalog());
  CHECK(config::to_text(loaded.report) == config::to_text(config::Report{}));
  CHECK(loaded.config.train.max_steps == 9);
  CHECK(loaded.config.train.seed == 3);
  CHECK(loaded.config.optimizer.lr == 0.0625);
  CHECK(loaded.config.scheduler.name == "half");
  CHECK(loaded.config.hooks == std::vector<std::string>{"hook 1"});
  const config::PartOptions& options = Registries::options_of(loaded.config, "scheduler", "half");
  REQUIRE(options.find("floor"));
  CHECK(std::get<double>(options.find("floor")->value) == 0.25);
}

TEST_CASE("recipe: faults of values are problems of the job, at the script's line", "[recipe]") {
  ScriptFixture f;
  f.registries = native_registries();
  config::Request request;
  request.files_must_exist = false;
  request.recipe = f.run(R"(return {
  optimizer = { weigth_decay = 0.1 },
  train = { max_steps = 2048.5, seed = 2^60 },
  model = { n_layers = "2" },
}
)");
  const std::string text = f.shown(config::to_text(config::load(request, f.registries.catalog()).report));
  CAPTURE(text);
  CHECK(text.find("recipe.lua:2:17") != std::string::npos);
  CHECK(text.find("did you mean 'weight_decay'") != std::string::npos);
  CHECK(text.find("recipe.lua:3:25") != std::string::npos);
  CHECK(text.find("recipe.lua:3:40") != std::string::npos);
  CHECK(text.find("recipe.lua:4:24") != std::string::npos);
}
