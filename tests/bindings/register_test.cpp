// kf.register: what is accepted, and the exact words for what is not.
#include "registry/kinds.h"

#include "fixture.h"

using namespace kf;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

std::string line_of_error(std::string_view source) {
  ScriptFixture f;
  return first_line(f.error(source));
}

/// An error from a scheduler with these `fields`, without the position.
std::string fields_error(const std::string& fields) {
  const std::string line =
      line_of_error("local kf = require('kf')\nkf.register.scheduler('s', function() end, { fields = " + fields + " })");
  CHECK(line.starts_with("recipe.lua:2: kf.register.scheduler: "));
  return line.substr(line.find("scheduler: ") + 11);
}

}  // namespace

TEST_CASE("register: a part is listed with its name, doc, origin and fields", "[register]") {
  ScriptFixture f;
  f.run(R"(local kf = require("kf")

kf.register.scheduler("half", function() return function() return 0.5 end end, {
  doc = "Half of it.",
  fields = {
    { "floor", "float", default = 0, min = 0, max = 1, doc = "Smallest factor." },
    { "count", "int" },
    { "shape", "string", default = "line", choices = { "line", "step" } },
    { "on", "bool", default = false },
    { "at", "list", default = {} },
  },
})
)");
  const config::PartInfo& info = f.registries.scheduler.get("half").info;
  CHECK(info.doc == "Half of it.");
  CHECK(f.shown(info.origin) == "recipe.lua:3");
  REQUIRE(info.fields.size() == 5);
  CHECK(info.fields[0].name == "floor");
  CHECK(info.fields[0].type == config::Type::real);
  CHECK(std::get<double>(info.fields[0].fallback.value) == 0.0);
  CHECK(info.fields[0].check.min == 0.0);
  CHECK(info.fields[0].check.max == 1.0);
  CHECK(info.fields[1].type == config::Type::integer);
  CHECK(info.fields[1].required);
  CHECK_FALSE(info.fields[0].required);
  CHECK(info.fields[2].check.choices == std::vector<std::string>{"line", "step"});
  CHECK(std::get<bool>(info.fields[3].fallback.value) == false);
  REQUIRE(info.fields[4].fallback.array());
  CHECK(info.fields[4].fallback.array()->empty());
}

TEST_CASE("register: a bound may leave itself out", "[register]") {
  ScriptFixture f;
  f.run(R"(require("kf").register.hook("h", { on_log = print }, { fields = {
    { "rate", "float", default = 0.5, above = 0, below = 1 },
    { "share", "float", default = 0, min = 0, below = 1 },
  } }))");
  const std::vector<config::Row> fields = f.registries.hook.get("h").info.fields;
  REQUIRE(fields.size() == 2);
  CHECK(fields[0].check.words() == "must be in (0, 1)");
  CHECK(fields[1].check.words() == "must be in [0, 1)");
  CHECK_FALSE(fields[0].check.holds(0));
  CHECK(fields[1].check.holds(0));
}

TEST_CASE("register: what a script registered goes with the script", "[register]") {
  ScriptFixture f;
  f.run("require('kf').register.scheduler('half', function() end)");
  REQUIRE(f.registries.scheduler.find("half"));
  f.script.reset();
  CHECK_FALSE(f.registries.scheduler.find("half"));
}

TEST_CASE("register: an unknown kind names the nearest", "[register]") {
  CHECK(line_of_error("require('kf').register.schedular('half', function() end)") ==
        "recipe.lua:1: no kind 'schedular'; did you mean 'scheduler'?");
  const std::string far = line_of_error("require('kf').register.banana('half', function() end)");
  CHECK(far.starts_with("recipe.lua:1: no kind 'banana'; have: model, block, attention, "));
}

TEST_CASE("register: parts of every kind are listed with doc and fields, like native ones", "[register]") {
  const std::string kind(GENERATE(from_range(kPartKinds)).name);
  ScriptFixture f;
  f.run("\nrequire('kf').register." + kind + "('x', function() end, { doc = 'Mine.', fields = { { 'n', 'int', default = 3 } } })");
  const config::Catalog catalog = f.registries.catalog();
  REQUIRE(catalog.at(kind).size() == 1);
  CHECK(catalog.at(kind)[0].doc == "Mine.");
  CHECK(catalog.at(kind)[0].fields.size() == 1);
  CHECK(f.shown(catalog.at(kind)[0].origin) == "recipe.lua:2");
  f.script.reset();
  CHECK(f.registries.catalog().at(kind).empty());
}

TEST_CASE("register: a second part of the same name names both places", "[register]") {
  CHECK(line_of_error(
            "local kf = require('kf')\nkf.register.scheduler('half', function() end)\n\nkf.register.scheduler('half', function() end)")
            .find("recipe.lua:4: scheduler 'half' is already registered by ") == 0);
  ScriptFixture f;
  CHECK(first_line(f.error(
            "local kf = require('kf')\nkf.register.hook('half', { on_log = print })\nkf.register.hook('half', { on_log = print })")) ==
        "recipe.lua:3: hook 'half' is already registered by recipe.lua:2; give yours another name");
}

TEST_CASE("register: wrong arguments are errors at the caller's line", "[register]") {
  CHECK(line_of_error("\n\nrequire('kf').register.hook('x', nil)") ==
        "recipe.lua:3: kf.register.hook: expected a table or function, got nil");
  CHECK(line_of_error("require('kf').register.scheduler('x', 5)") ==
        "recipe.lua:1: kf.register.scheduler: expected a factory (a function), got number 5");
  CHECK(line_of_error("require('kf').register.scheduler(function() end)") ==
        "recipe.lua:1: kf.register.scheduler: expected a name (a string), got function");
  CHECK(line_of_error("require('kf').register.scheduler('a b', function() end)") ==
        "recipe.lua:1: kf.register.scheduler: the name \"a b\" must be letters, digits, '_' and '-', as in [scheduler.my_part]");
  CHECK(line_of_error("require('kf').register.scheduler('x', function() end, 'doc')") ==
        "recipe.lua:1: kf.register.scheduler: expected { fields = ..., doc = ... } as third argument, got 'doc'");
  CHECK(line_of_error("require('kf').register.scheduler('x', function() end, { docs = 'd' })") ==
        "recipe.lua:1: kf.register.scheduler: unknown key 'docs'; did you mean 'doc'?");
  CHECK(line_of_error("require('kf').register.scheduler = 1") ==
        "recipe.lua:1: kf.register is read-only; write kf.register.<kind>(name, factory), got an assignment to 'scheduler'");
}

TEST_CASE("register: the position is that of a helper's call too", "[register]") {
  CHECK(line_of_error("local kf = require('kf')\nlocal function add(name)\n  kf.register.hook(name, 1)\nend\nadd('x')")
            .starts_with("recipe.lua:3: kf.register.hook: "));
}

TEST_CASE("register: rows of fields are checked", "[register]") {
  CHECK(fields_error("5") == "fields must be a list of rows, got number 5");
  CHECK(fields_error("{ 5 }") == "field 1: expected a row { name, type, default = ... }, got number 5");
  CHECK(fields_error("{ { 'a' } }") == "field 1 'a': expected a type second (a string), got nil");
  CHECK(fields_error("{ { 'a', 'floot' } }") == "field 1 'a': no type 'floot'; did you mean 'float'?");
  CHECK(fields_error("{ { 'a', 'int', defualt = 1 } }") == "field 1 'a': unknown key 'defualt'; did you mean 'default'?");
  CHECK(fields_error("{ { 'a', 'int', 3 } }") == "field 1 'a': there is no place for item 3 (number 3)");
  CHECK(fields_error("{ { 'a', 'int', default = 1.5 } }") == "field 1 'a': default (number 1.5) is no int");
  CHECK(fields_error("{ { 'a', 'bool', default = 0 } }") == "field 1 'a': default (number 0) is no bool");
  CHECK(fields_error("{ { 'a', 'float', default = 2, max = 1 } }") == "field 1 'a': default (2) is above max (1)");
  CHECK(fields_error("{ { 'a', 'int', default = -1, min = 0 } }") == "field 1 'a': default (-1) is below min (0)");
  CHECK(fields_error("{ { 'a', 'int', min = 2, max = 1 } }") == "field 1 'a': min (2) is above max (1)");
  CHECK(fields_error("{ { 'a', 'float', default = 0, above = 0 } }") == "field 1 'a': default (0) is not above 0");
  CHECK(fields_error("{ { 'a', 'float', default = 1, below = 1 } }") == "field 1 'a': default (1) is not below 1");
  CHECK(fields_error("{ { 'a', 'float', min = 0, above = 0 } }") == "field 1 'a': min and above are two words for one bound; give one");
  CHECK(fields_error("{ { 'a', 'float', max = 0, below = 0 } }") == "field 1 'a': max and below are two words for one bound; give one");
  CHECK(fields_error("{ { 'a', 'float', above = 1, max = 1 } }") == "field 1 'a': above (1) and max (1) leave no value");
  CHECK(fields_error("{ { 'a', 'float', min = 2, below = 1 } }") == "field 1 'a': min (2) and below (1) leave no value");
  CHECK(fields_error("{ { 'a', 'string', above = 2 } }") == "field 1 'a': above is for int and float only");
  CHECK(fields_error("{ { 'a', 'string', min = 2 } }") == "field 1 'a': min is for int and float only");
  CHECK(fields_error("{ { 'a', 'int', choices = { '1' } } }") == "field 1 'a': choices are for string only");
  CHECK(fields_error("{ { 'a', 'string', choices = { 'x', 'y' }, default = 'z' } }") ==
        "field 1 'a': default 'z' is none of its choices: x, y");
  CHECK(fields_error("{ { 'a', 'int' }, { 'a', 'float' } }") == "field 'a' is declared twice");
  CHECK(fields_error("{ { 'a b', 'int' } }") == "field 1 'a b': the name must be letters, digits, '_' and '-'");
}

TEST_CASE("register: a part with fields cannot be called as a key of its section", "[register]") {
  CHECK(line_of_error("local kf = require('kf')\nkf.register.optimizer('nesterov', print, { fields = { { 'a', 'int' } } })")
            .starts_with("recipe.lua:2: kf.register.optimizer: [optimizer] has a key 'nesterov' of its own"));
}

TEST_CASE("register: an unknown field of kf names the nearest", "[register]") {
  CHECK(line_of_error("local kf = require('kf')\nkf.regster.hook('x', {})") ==
        "recipe.lua:2: kf has no field 'regster'; did you mean 'register'?");
  CHECK(line_of_error("local kf = require('kf')\nkf.best = 1") ==
        "recipe.lua:2: kf is read-only: cannot set 'best'; keep your own values in a local table");
}
