// What scripts can load, what they are given, how files fail.
#include <cstdlib>

#include "fixture.h"

using namespace kf;
using kf::test::first_line;
using kf::test::ScriptFixture;

TEST_CASE("script: require finds the script's folder, KF_LUA_PATH and, before both, the shipped modules", "[require]") {
  kf::test::TempDir extra;
  extra.write("from_path.lua", "return 'path'");
  extra.write("both.lua", "return 'path'");
  setenv("KF_LUA_PATH", extra.path().c_str(), 1);
  ScriptFixture f;
  f.folder.write("helper.lua", "return { name = 'helper' }");
  f.folder.write("package_dir/init.lua", "return 'init'");
  f.folder.write("kf/init.lua", "return 'not the shipped one'");
  f.folder.write("both.lua", "return 'folder'");
  f.run(R"(
assert(require("helper").name == "helper")
assert(require("package_dir") == "init")
assert(require("from_path") == "path")
assert(require("both") == "folder")
assert(type(require("kf")) == "table" and require("kf").version == "0.1.0")
assert(_G.kf == nil)
)");
  unsetenv("KF_LUA_PATH");
}

TEST_CASE("script: a module that is missing or broken names the line that asked", "[require]") {
  ScriptFixture f;
  f.folder.write("broken.lua", "\nlocal x = = 1");
  CHECK(first_line(f.error("\n\nrequire('nowhere')")) == "recipe.lua:3: module 'nowhere' not found:");
  CHECK(f.error("require('nowhere')").find("no shipped module 'nowhere'") != std::string::npos);
  const std::string text = f.error("\nrequire('broken')");
  CHECK(first_line(text).find("broken.lua") != std::string::npos);
  CHECK(text.find("broken.lua:2: ") != std::string::npos);
}

TEST_CASE("script: files that cannot run are errors of the script", "[require]") {
  ScriptFixture f;
  CHECK(first_line(f.error("local a = 1\nlocal b = = 2")) == "recipe.lua:2: unexpected symbol near '='");
  CHECK_THROWS_AS(f.script->run_file(f.folder / "missing.lua"), Error);
  CHECK(f.error("return 5") == "recipe.lua:1: a script returns a table (a job), a sweep or nothing, got number 5");
  CHECK(f.error(std::string("\x1bLJ\x02", 4)).find("is compiled Lua; give the source") != std::string::npos);
  CHECK_FALSE(f.run("local x = 1"));
  CHECK_FALSE(f.run("#!/usr/bin/env kf-host\nassert(true)"));
  CHECK(first_line(f.error("#!/usr/bin/env kf-host\nerror('x')")) == "recipe.lua:2: x");
}

TEST_CASE("script: what other languages write in another way is told how Lua does", "[require]") {
  ScriptFixture f;
  CHECK(first_line(f.error("\nif 1 != 2 then end")) == "recipe.lua:2: 'then' expected near '!'; not equal is ~=");
  CHECK(first_line(f.error("local x = 1\nx += 1")) == "recipe.lua:2: '=' expected near '+'; there is no +=: x = x + 1");
  CHECK(first_line(f.error("local x = y:repeat(2)")).find("x:tile(2, 1), or x[\"repeat\"](x, 2, 1)") != std::string::npos);
}

TEST_CASE("script: arguments, ranks and the log are there", "[require]") {
  ScriptHost host;
  host.rank = 2;
  host.world = 4;
  ScriptFixture f(host, {"a", "--b"});
  f.run(R"(local kf = require("kf")
assert(#kf.args == 2 and kf.args[1] == "a" and kf.args[2] == "--b")
assert(kf.dist.rank == 2 and kf.dist.world == 4)
kf.log.info("loss %.2f at %d", 2.5, 3)
kf.log.warn("50 % of nothing")
assert(kf.config == nil)
)");
  CHECK(first_line(f.error("local kf = require('kf')\nkf.log.info(nil)")) == "recipe.lua:2: kf.log.info: expected a string, got nil");
  CHECK(first_line(f.error("local kf = require('kf')\nkf.log.info('%d', 'x')")).starts_with("recipe.lua:2: kf.log.info: bad argument"));
}

TEST_CASE("script: tables of rows are printed aligned", "[require]") {
  ScriptFixture f;
  f.run(R"(local text = require("kf.table").format({ { name = "a", loss = 2.25 }, { name = "long", steps = 10 } })
assert(text == "loss  name  steps\n2.25  a         -\n   -  long     10", text)
assert(require("kf.table").format({ { a = 1, b = 2 } }, { "b" }) == "b\n2")
)");
  CHECK(first_line(f.error("local kf = require('kf')\nkf.print_table({ 5 })")) ==
        "recipe.lua:2: kf.print_table: row 1 is a number, not a table");
}
