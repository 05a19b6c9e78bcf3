// Errors through both languages: positions, tracebacks, codes, destructors.
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "fixture.h"

using namespace kf;
using kf::lua::guarded;
using kf::lua::Runtime;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

int alive = 0;  // of Counted

struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

int throw_std(lua_State*) {
  const Counted counted;
  throw std::runtime_error("cpp cause");
}

int throw_data(lua_State*) {
  const Counted counted;
  throw Error(Code::data, "shard 3 is truncated");
}

/// Calls its argument back through C++ frames with objects in them.
int call_back(lua_State* L) {
  const Counted counted;
  const kf::lua::Crossing crossing(L);
  lua_pushvalue(L, 1);
  const Counted second;
  Runtime::of(L).call(0, 0);
  return 0;
}

/// The same with lua_call: the Lua error itself unwinds this frame.
int call_raw(lua_State* L) {
  const Counted counted;
  lua_pushvalue(L, 1);
  lua_call(L, 0, 0);
  return 0;
}

struct Bare {
  Bare() : runtime(Runtime::create()) {
    lua_State* L = runtime->state();
    lua_register(L, "throw_std", &guarded<throw_std>);
    lua_register(L, "throw_data", &guarded<throw_data>);
    lua_register(L, "call_back", &guarded<call_back>);
    lua_register(L, "call_raw", &guarded<call_raw>);
  }
  void run(const std::string& source) {
    REQUIRE(luaL_loadbuffer(runtime->state(), source.data(), source.size(), "@t.lua") == 0);
    runtime->call(0, 0);
  }
  Error error(const std::string& source) {
    const int top = lua_gettop(runtime->state());
    try {
      run(source);
    } catch (const Error& error) {
      CHECK(lua_gettop(runtime->state()) == top);
      return error;
    }
    FAIL("no error");
    return Error(Code::other, "");
  }
  std::shared_ptr<Runtime> runtime;
};

}  // namespace

TEST_CASE("crossing: a C++ exception becomes a Lua error at the caller's line, and pcall catches it", "[crossing]") {
  Bare bare;
  bare.run("local ok, message = pcall(function()\n\n  throw_std()\nend)\nassert(not ok and message == 't.lua:3: cpp cause', message)");
  CHECK(alive == 0);
}

TEST_CASE("crossing: an error that goes through unchanged keeps its code, with the script behind", "[crossing]") {
  Bare bare;
  const Error error = bare.error("local function load()\n  throw_data()\nend\nload()\n");
  CHECK(error.code() == Code::data);
  CHECK(std::string(error.what()) == "shard 3 is truncated\n  from the host's throw_data\n  from t.lua:2 in load\n  from t.lua:4");
  CHECK(bare.error("local ok, message = pcall(throw_data)\nerror('mine: ' .. message .. '!')").code() == Code::script);
}

TEST_CASE("crossing: an uncaught Lua error has its position first and the traceback behind", "[crossing]") {
  Bare bare;
  const Error error =
      bare.error("local function inner()\n  error('bad')\nend\nlocal function outer()\n  inner()\n  return 1\nend\nouter()\n");
  CHECK(error.code() == Code::script);
  CHECK(std::string(error.what()) == "t.lua:2: bad\n  from t.lua:2 in inner\n  from t.lua:5 in outer\n  from t.lua:8");
}

TEST_CASE("crossing: errors without a position get the line that raised them", "[crossing]") {
  Bare bare;
  CHECK(first_line(bare.error("\nerror('bare', 0)").what()) == "t.lua:2: bare");
  CHECK(first_line(bare.error("\n\nerror({ code = 1 })").what()) == "t.lua:3: {code = 1}");
  CHECK(first_line(bare.error("error({ message = 'disk full', code = 7, at = { '/x', n = {} , f = print } })").what()) ==
        "t.lua:1: disk full {at = {'/x', f = a function, n = {}}, code = 7}");
  CHECK(first_line(bare.error("error({ 1, true, { { {} } } })").what()) == "t.lua:1: {1, true, {{...}}}");
  CHECK(first_line(bare.error("local t = {} t.t = t error(t)").what()) == "t.lua:1: {t = {t = {...}}}");
  CHECK(first_line(bare.error("local t = {} for i = 1, 100 do t[i] = i end error(t)").what()) == "t.lua:1: {1, 2, 3, 4, 5, 6, 7, 8, ...}");
  CHECK(first_line(bare.error("error(nil)").what()) == "t.lua:1: (error object is a nil value)");
  CHECK(first_line(bare.error("error(setmetatable({}, { __tostring = function() return 'shown' end }))").what()) == "t.lua:1: shown");
}

TEST_CASE("crossing: Lua inside C++ inside Lua keeps the innermost position and one traceback", "[crossing]") {
  Bare bare;
  const Error error = bare.error("call_back(function()\n  error('deep')\nend)\n");
  CHECK(std::string(error.what()) ==
        "t.lua:2: deep\n  from t.lua:2 in the function of line 1\n  from the host's call_back\n  from t.lua:1");
  CHECK(alive == 0);
}

TEST_CASE("crossing: callbacks run on the coroutine that is running", "[crossing]") {
  Bare bare;
  bare.run(
      "local seen\nlocal co = coroutine.create(function()\n  call_back(function() seen = coroutine.running() end)\n  return 'done'\nend)\n"
      "local ok, result = coroutine.resume(co)\nassert(ok and result == 'done', result)\nassert(seen == co)");
}

TEST_CASE("crossing: destructors run and nothing piles up over a hundred thousand errors", "[crossing]") {
  Bare bare;
  const std::string way = GENERATE("throw_std", "call_back(function() throw_std() end)", "call_raw(function() error('x') end)",
                                   "call_raw(function() call_back(function() throw_data() end) end)");
  CAPTURE(way);
  const std::string call = way == "throw_std" ? "throw_std()" : way;
  bare.run("for i = 1, 25000 do local ok = pcall(function() " + call + " end) assert(not ok) end");
  CHECK(alive == 0);
  CHECK(lua_gettop(bare.runtime->state()) == 0);
  for (int i = 0; i < 1000; ++i) {
    bare.error(call);
  }
  CHECK(alive == 0);
  lua_gc(bare.runtime->state(), LUA_GCCOLLECT, 0);
  CHECK(lua_gc(bare.runtime->state(), LUA_GCCOUNT, 0) < 1024);
}

TEST_CASE("crossing: a stack overflow in Lua is an error like any other", "[crossing]") {
  Bare bare;
  const std::string text = bare.error("local function f() return 1 + f() end\nf()").what();
  INFO(text);
  CHECK(first_line(text).find("stack overflow") != std::string::npos);
  CHECK(text.find("calls that are left out") != std::string::npos);  // Lua's walk to each of them would take long
  CHECK(text.find("from t.lua:2") != std::string::npos);
  bare.run("assert(1 + 1 == 2)");
}

TEST_CASE("crossing: references keep the state alive and give their value back", "[crossing]") {
  lua::Ref ref;
  {
    Bare bare;
    lua_pushstring(bare.runtime->state(), "kept");
    ref = lua::Ref(bare.runtime->state());
  }
  lua_State* L = ref.runtime().state();
  ref.push(L);
  CHECK(std::string(lua_tostring(L, -1)) == "kept");
  lua_pop(L, 1);
}

TEST_CASE("crossing: a script's long path is shown in full", "[crossing]") {
  ScriptFixture f;
  const std::string folder = "a_folder_with_a_name/that_goes_on_and_on/so_that_lua_would_cut_it/down_to_sixty_characters";
  const auto run = [&](const std::string& source) {
    try {
      f.script->run_file(f.folder.write(folder + "/deep.lua", source));
    } catch (const Error& error) {
      return first_line(f.shown(error.what()));
    }
    return std::string("no error");
  };
  CHECK(run("\nerror('here')") == folder + "/deep.lua:2: here");
  CHECK(run("\nrequire('kf').register.hook()") == folder + "/deep.lua:2: kf.register.hook: expected a name (a string), got nil");
  CHECK(run("\n\nlocal = 1").starts_with(folder + "/deep.lua:3: "));
}
