// lua/meta/kf.lua: not stale, and complete.
#include "bindings/api/meta.h"
#include "bindings/api/api.h"
#include "core/fs.h"

#include "fixture.h"

using namespace kf;
using kf::test::ScriptFixture;

namespace {

/// The names of `owner`, as a Lua table { name = true }.
std::string names_of(const std::string& owner) {
  std::string out = "{ ";
  for (const lua::ApiRow& row : lua::api_rows()) {
    if (row.owner == owner) {
      out += "['" + std::string(row.name) + "'] = true, ";
    }
  }
  return out + "}";
}

}  // namespace

TEST_CASE("meta: lua/meta/kf.lua is what the rows say", "[meta]") {
  INFO("run `kf-host config meta > lua/meta/kf.lua`");
  CHECK(read_file(fs::path(KF_SOURCE_DIR) / "lua/meta/kf.lua") == lua::meta_text());
}

TEST_CASE("meta: docs/api.md is what the rows say", "[meta]") {
  INFO("run `kf-host config api > docs/api.md`");
  CHECK(read_file(fs::path(KF_SOURCE_DIR) / "docs/api.md") == lua::api_markdown());
}

TEST_CASE("meta: every field of kf and every kind has its row", "[meta]") {
  ScriptFixture f;
  f.run("local kf = require('kf') local known = " + names_of("kf") +
        " for name in pairs(kf) do assert(known[name], 'no row for kf.' .. name) end");
  f.run("local kf = require('kf') for name in pairs(" + names_of("kf.register") + ") do assert(kf.register[name]) end");
}

TEST_CASE("meta: the rows of ctx are those that a hook finds", "[meta]") {
  ScriptFixture f;
  f.run("require('kf').register.hook('h', { on_step_end = function(ctx) for name in pairs(" + names_of("kf.HookContext") +
        ") do local found = ctx[name] end end })");
  HookContext context;
  f.hook("h")->call(Event::step_end, context);
  std::string all = names_of("kf.HookContext");
  const std::string message = kf::test::error_of(f, [&] {
    f.run("require('kf').register.hook('bad', { on_step_end = function(ctx) local x = ctx.zzzzzz end })");
    f.hook("bad")->call(Event::step_end, context);
  });
  const std::size_t have = message.find("have: ");
  REQUIRE(have != std::string::npos);
  for (const std::string& name : split(message.substr(have + 6, message.find('\n') - have - 6), ',')) {
    CAPTURE(name);
    CHECK(all.find("'" + std::string(trim(name)) + "'") != std::string::npos);
  }
}

TEST_CASE("meta: the numbers of every row have their rows, and ctx:metrics() has them", "[meta]") {
  ScriptFixture f;
  f.run("require('kf').register.hook('h', { on_step_end = function(ctx) local known, row = " + names_of("kf.Row") +
        ", ctx:metrics() for name in pairs(row) do assert(known[name], name) end"
        " assert(row.step == 3 and row.tokens == 2^52 and row.loss == 2.5 and row.z_loss == 0 and row.skipped == 0 and "
        "known['moe/dropped']) end })");
  HookContext context;
  context.metrics = [] {
    StepRow row;
    row.step = 3;
    row.tokens = std::int64_t{1} << 52;
    row.loss = 2.5;
    return row;
  };
  f.hook("h")->call(Event::step_end, context);
}

TEST_CASE("meta: methods of tensors and modules, and kf.nn, have their rows", "[meta]") {
  ScriptFixture f;
  f.run("local kf = require('kf') local nn = kf.nn local known = " + names_of("kf.nn") +
        " for name in pairs(nn) do assert(known[name], 'no row for kf.nn.' .. name) end"
        " for name in pairs(known) do assert(nn[name], 'kf.nn has no ' .. name) end");
  f.run("local kf = require('kf') local t = kf.ones({ 2, 2 }) for name in pairs(" + names_of("kf.Tensor") +
        ") do if name ~= '[any]' and name ~= 'grad' and name ~= 'imag' then assert(t[name] ~= nil, name) end end");
  f.run("local kf = require('kf') local m = kf.nn.linear(2, 2) for name in pairs(" + names_of("kf.Module") +
        ") do if name ~= '[any]' then assert(m[name] ~= nil, name) end end");
  const std::string text = lua::meta_text();
  for (const char* row :
       {"---@class kf.Tensor: kf.Methods\n", "---@field softmax fun(self: kf.Tensor, dim: integer, dtype?: string): kf.Tensor",
        "---@field add (fun(self: kf.Tensor, other: ", "---@field _foreach_add_ (fun(", "---@field [\"repeat\"] fun("}) {
    CAPTURE(row);
    CHECK(text.find(row) != std::string::npos);
  }
  CHECK(text.size() < 500 * 1024);  // lua-language-server reads no larger file
}

TEST_CASE("meta: every event has its row", "[meta]") {
  const std::string hook = names_of("kf.Hook");
  for (const std::string_view event : kEventNames) {
    CAPTURE(event);
    CHECK(hook.find("'on_" + std::string(event) + "'") != std::string::npos);
  }
}
