// Hook tables: which events, which steps, which state.
#include <cmath>
#include <fstream>
#include <limits>

#include "core/log.h"
#include "train/loop/hooks.h"

#include "fixture.h"

using namespace kf;
using kf::test::error_of;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

std::string hook_error(const std::string& table) {
  ScriptFixture f;
  const std::string line = first_line(f.error("local kf = require('kf')\nkf.register.hook('h', " + table + ")"));
  const std::string prefix = "recipe.lua:2: hook 'h': ";
  CHECK(line.starts_with(prefix));
  return line.substr(std::min(prefix.size(), line.size()));
}

/// The hook `h` of the script `h = <table>`.
struct OneHook {
  explicit OneHook(const std::string& table, ScriptHost host = {}) : f(std::move(host)) {
    f.run("kf = require('kf')\nkf.register.hook('h', " + table + ")");
    hook = f.hook("h");
  }
  void call(Event event, HookContext& context) { hook->call(event, context); }
  bool wants(Event event, std::int64_t step) const { return hook->wants(event, step); }

  ScriptFixture f;
  std::unique_ptr<Hook> hook;
};

}  // namespace

TEST_CASE("hook: every event has its on_ function", "[hook]") {
  const std::size_t index = GENERATE(range(std::size_t{0}, std::size(kEventNames)));
  const std::string event(kEventNames[index]);
  CAPTURE(event);
  OneHook one("{ on_" + event + " = function(ctx) ctx:stop('" + event + "') end }");
  for (std::size_t i = 0; i < std::size(kEventNames); ++i) {
    CHECK(one.wants(static_cast<Event>(i), 3) == (i == index));
  }
  Controls controls;
  HookContext context;
  context.controls = &controls;
  one.call(static_cast<Event>(index), context);
  CHECK(controls.stop == event);
}

TEST_CASE("hook: a count of tokens that no Lua number holds is an exact integer", "[hook]") {
  OneHook one("{ on_step_end = function(ctx) ctx:stop(tostring(ctx.tokens)) end }");
  Controls controls;
  HookContext context;
  context.controls = &controls;
  context.state.tokens = (std::int64_t{1} << 53) + 1;
  one.call(Event::step_end, context);
  CHECK(controls.stop == "9007199254740993LL");
  context.state.tokens = std::int64_t{1} << 53;
  one.call(Event::step_end, context);
  CHECK(controls.stop == "9.007199254741e+15");  // a plain number, as ever
}

TEST_CASE("hook: every holds for the events of a step only, and all events of an update go together", "[hook]") {
  OneHook one("{ every = 5, on_step_begin = print, on_backward_end = print, on_step_end = print, on_eval_end = print, on_log = print }");
  CHECK(one.wants(Event::step_end, 5));
  CHECK(one.wants(Event::step_end, 10));
  CHECK_FALSE(one.wants(Event::step_end, 4));
  CHECK_FALSE(one.wants(Event::step_end, 6));
  CHECK(one.wants(Event::step_begin, 4));  // four completed updates: the fifth begins
  CHECK(one.wants(Event::backward_end, 4));
  CHECK_FALSE(one.wants(Event::step_begin, 5));
  CHECK(one.wants(Event::eval_end, 3));
  CHECK(one.wants(Event::log, 3));
}

TEST_CASE("hook: ranks choose where it runs", "[hook]") {
  ScriptHost second;
  second.rank = 1;
  second.world = 4;
  CHECK_FALSE(OneHook("{ ranks = 0, on_log = print }", second).wants(Event::log, 1));
  CHECK(OneHook("{ ranks = 1, on_log = print }", second).wants(Event::log, 1));
  CHECK(OneHook("{ ranks = { 0, 1 }, on_log = print }", second).wants(Event::log, 1));
  CHECK_FALSE(OneHook("{ ranks = { 0, 2 }, on_log = print }", second).wants(Event::log, 1));
  CHECK(OneHook("{ ranks = 'all', on_log = print }", second).wants(Event::log, 1));
}

TEST_CASE("hook: wrong tables are refused where they are registered", "[hook]") {
  CHECK(hook_error("{ on_stepend = print }") == "no event 'on_stepend'; did you mean 'on_step_end'?");
  CHECK(hook_error("{ step_end = print }") == "no key 'step_end'; did you mean 'on_step_end'?");
  CHECK(hook_error("{ on_step_end = print, evry = 2 }") == "no key 'evry'; did you mean 'every'?");
  CHECK(hook_error("{ on_banana = print }").starts_with("no event 'on_banana'; have: on_train_begin, on_step_begin, "));
  CHECK(hook_error("{ on_step_end = 3 }") == "on_step_end must be a function, got number 3");
  CHECK(hook_error("{}") == "the hook has no event; write on_step_end = function(ctx) ... end");
  CHECK(hook_error("{ print }").starts_with("a hook is a table of events "));
  CHECK(hook_error("{ every = 0, on_log = print }") == "every must be a whole number from 1 on, got number 0");
  CHECK(hook_error("{ every = 2.5, on_log = print }") == "every must be a whole number from 1 on, got number 2.5");
  CHECK(hook_error("{ priority = 1.5, on_log = print }") == "priority must be a whole number, got number 1.5");
  CHECK(hook_error("{ ranks = 'some', on_log = print }") == "ranks must be \"all\", a rank or a list of ranks (from 0), got 'some'");
  CHECK(hook_error("{ on_error = 'ignore', on_log = print }") == "on_error must be \"stop\" or \"warn\", got 'ignore'");
  CHECK(hook_error("{ state = function() return {} end, on_log = print }") ==
        "state and load belong together: what state() returns is given to load() when a run goes on; 'load' is missing");
}

TEST_CASE("hook: a table is what it was when it was registered", "[hook]") {
  ScriptFixture f;
  f.run(
      "local kf = require('kf')\nlocal h = { every = 2, on_step_end = print }\nkf.register.hook('h', h)\nh.every, h.on_log, h.evry = 3, "
      "print, 1");
  const auto hook = f.hook("h");
  CHECK(hook->wants(Event::step_end, 2));
  CHECK_FALSE(hook->wants(Event::step_end, 3));
  CHECK_FALSE(hook->wants(Event::log, 2));
}

TEST_CASE("hook: a factory gets options and the whole job; its table is checked when it is built", "[hook]") {
  ScriptFixture f;
  f.run(R"(local kf = require("kf")
kf.register.hook("h", function(a)
  local steps, every = a.config.train.max_steps, a.options.every
  return { name = "other", every = every, on_step_end = function(ctx) ctx:stop("of " .. steps) end }
end)
kf.register.hook("bad", function() return { on_stop = print } end)
kf.register.hook("none", function() end)
)");
  f.config.train.max_steps = 77;
  f.config.parts["hook.h"]["every"] = config::Node(std::int64_t{4});
  const auto hook = f.hook("h");
  CHECK(hook->name() == "other");
  CHECK(hook->wants(Event::step_end, 8));
  CHECK_FALSE(hook->wants(Event::step_end, 6));
  Controls controls;
  HookContext context;
  context.controls = &controls;
  hook->call(Event::step_end, context);
  CHECK(controls.stop == "of 77");
  CHECK(first_line(error_of(f, [&] { f.hook("bad"); })).starts_with("recipe.lua:6: hook 'bad': no event 'on_stop'"));
  CHECK(first_line(error_of(f, [&] { f.hook("none"); })) == "recipe.lua:7: hook 'none' must return a hook table, got nil");
}

TEST_CASE("hook: state comes back as it was, and load gets it", "[hook]") {
  const char* table = R"((function()
  local kept = { best = math.huge, seen = { 1, 2.5, "x", true }, none = {}, big = 2^60, deep = { a = { b = -0.0 } } }
  return {
    on_step_end = function(ctx) ctx:log({ best = kept.best, seen = #kept.seen, item = kept.seen[2], big = kept.big }) end,
    state = function() return kept end,
    load = function(s) kept = s end,
  }
end)())";
  OneHook one(table);
  const config::Node state = one.hook->state();
  REQUIRE(state.table());
  CHECK(std::get<double>(state.table()->find("best")->value) == std::numeric_limits<double>::infinity());
  CHECK(std::get<double>(state.table()->find("big")->value) == 1152921504606846976.0);
  CHECK(std::signbit(std::get<double>(state.table()->find("deep")->table()->find("a")->table()->find("b")->value)));
  OneHook two(table);
  config::Node other = state;
  (*other.table())["best"] = config::Node(1.5);
  two.hook->load(other);
  std::vector<std::pair<std::string, double>> logged;
  HookContext context;
  context.log = [&](const auto& values) { logged = values; };
  two.call(Event::step_end, context);
  const std::vector<std::pair<std::string, double>> expected = {{"best", 1.5}, {"big", 1152921504606846976.0}, {"item", 2.5}, {"seen", 4}};
  CHECK(logged == expected);
}

TEST_CASE("hook: a state that cannot be saved names the place", "[hook]") {
  const auto state_error = [](const std::string& value) {
    OneHook one("{ on_log = print, load = print, state = function() return " + value + " end }");
    return first_line(error_of(one.f, [&] { one.hook->state(); }));
  };
  CHECK(state_error("{ a = { b = print } }") ==
        "recipe.lua:2: hook 'h': its state: 'a.b' is a function; only booleans, numbers, strings and tables have a place there");
  CHECK(state_error("{ a = { 1, x = 2 } }") ==
        "recipe.lua:2: hook 'h': its state: 'a' mixes names and list items; a table holds either names or the items 1, 2, 3, ...");
  CHECK(state_error("{ a = { [7] = 2 } }") ==
        "recipe.lua:2: hook 'h': its state: 'a' has the key number 7; a table holds either names or the items 1, 2, 3, ...");
  CHECK(state_error("(function() local t = {} t.t = t return t end)()").find("is nested too deep") != std::string::npos);
  CHECK(state_error("'\\255'").find("is a string that is not UTF-8") != std::string::npos);
}

TEST_CASE("hook: an error stops the run, with the line first and the event behind", "[hook]") {
  OneHook one("{\n  on_step_end = function(ctx)\n    local x = nil\n    return x.field\n  end,\n}");
  HookContext context;
  context.state.step = 7;
  const std::string text = error_of(one.f, [&] { one.call(Event::step_end, context); });
  CHECK(text == "recipe.lua:5: attempt to index local 'x' (a nil value)\n  in recipe.lua:2: hook 'h', on_step_end at step 7");
}

TEST_CASE("hook: on_error = warn logs the error and goes on", "[hook]") {
  OneHook one("{ on_error = 'warn', on_step_end = function() error('oh') end }");
  HookContext context;
  const std::size_t before = log::count(log::Level::warn);
  one.call(Event::step_end, context);
  one.call(Event::step_end, context);
  CHECK(log::count(log::Level::warn) == before + 2);
}

TEST_CASE("hook: higher priority comes first, equals keep their order", "[hook]") {
  ScriptFixture f;
  f.run(R"(local kf = require("kf")
order = {}
for i, priority in ipairs({ 0, 5, 0, 10, -1 }) do
  kf.register.hook("h" .. i, { priority = priority, on_step_end = function() order[#order + 1] = i end })
end
)");
  std::vector<std::unique_ptr<Hook>> made;
  for (int i = 1; i <= 5; ++i) {
    made.push_back(f.hook("h" + std::to_string(i)));
  }
  Hooks hooks(std::move(made));
  HookContext context;
  hooks.call(Event::step_end, context);
  f.run("assert(table.concat(order, ' ') == '4 2 1 3 5', table.concat(order, ' '))");
}

TEST_CASE("hook: a million calls leave memory as it was", "[hook]") {
  OneHook one("{ on_step_end = function(ctx) local x = ctx.step + ctx.lr + ctx.tokens end }");
  HookContext context;
  one.call(Event::step_end, context);
  one.f.run("collectgarbage() collectgarbage() used = collectgarbage('count')");
  const auto resident = [] {
    std::ifstream in("/proc/self/statm");
    long pages = 0;
    in >> pages >> pages;
    return pages * 4096;
  };
  const long before = resident();
  for (int i = 0; i < 1000000; ++i) {
    one.call(Event::step_end, context);
  }
  one.f.run("collectgarbage() collectgarbage() assert(collectgarbage('count') - used < 16)");
  CHECK(resident() - before < 4'000'000);
}
