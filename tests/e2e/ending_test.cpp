// Ends that a script can bring about: crashes, exits, hangs, circles, limits of the machine. Each is one message and an exit status.

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;

namespace {

/// A job whose hook `ender` does `body` after the first step.
std::string ending(const std::string& body, const std::string& more = "") {
  return "local ffi = require('ffi')\nffi.cdef[[ void abort(void); void exit(int); int pipe(int*); long read(int, void*, size_t); int "
         "kill(int, int); "
         "int getpid(void); ]]\n" +
         job("eval = { enabled = false }, " + more + " hooks = { { name = 'ender', on_step_end = function(ctx) " + body + " end } }");
}

/// kf-host s.lua under what a shell sets first.
Finished under(const ScriptRun& run, const std::string& shell, const std::string& more = "") {
  Options options;
  options.cwd = run.toy.folder();
  return kf::test::run({"bash", "-c", shell + "; exec '" + run.toy.command({}).front() + "' s.lua " + more}, options);
}

Finished stop_once(const ScriptRun& run, int signal) {
  Options options;
  options.cwd = run.toy.folder();
  Process process(run.toy.command({"s.lua"}), options);
  REQUIRE(process.wait_for("> in"));
  process.signal(signal);
  return process.wait();
}

}  // namespace

TEST_CASE("ending: a crash names the hook and its event", "[ending]") {
  struct Case {
    const char* body;
    int status;
    const char* says;
  };
  const auto crash = GENERATE(values<Case>({
      {"ffi.cast('int*', 8)[0] = 1", 128 + SIGSEGV, "SIGSEGV"},
      {"ffi.C.abort()", 128 + SIGABRT, "SIGABRT"},
      {"ffi.C.exit(0)", 1, "exit() was called inside of a run"},
  }));
  CAPTURE(crash.body);
  const ScriptRun run(ending(crash.body));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == crash.status);
  CHECK_THAT(done.err, Contains(crash.says) && Contains("hook 'ender', step_end, step 1") && Contains("the same command goes on"));
  CHECK_THAT(run.toy.read("runs/s/log.txt"), Contains(crash.says) && Contains("hook 'ender', step_end, step 1"));
}

TEST_CASE("ending: one signal is enough where train.shutdown_timeout_sec is short, whatever the run hangs in", "[ending]") {
  const char* const body = GENERATE("while true do end",                                                  // machine code of the compiler
                                    "local p = ffi.new('int[2]') ffi.C.pipe(p) ffi.C.read(p[0], p, 1)");  // a call that does not return
  const ScriptRun run(ending("print('> in') io.stdout:flush() " + std::string(body), "train = { shutdown_timeout_sec = 1 },"));
  const Finished done = stop_once(run, SIGTERM);
  INFO(done.err);
  CHECK_FALSE(done.timed_out);
  CHECK(done.status == 130);
  CHECK_THAT(done.err, Contains("train.shutdown_timeout_sec (1) is over") && Contains("hook 'ender', step_end, step 1"));
}

TEST_CASE("ending: the grace does not cut off a run that comes to its end", "[ending]") {
  const ScriptRun run(
      ending("if ctx.step == 1 then print('> in') io.stdout:flush() local t = os.clock() while os.clock() < t + 0.3 do end end",
             "train = { max_steps = 4000, shutdown_timeout_sec = 200 },"));
  const Finished done = stop_once(run, SIGTERM);
  INFO(done.err);
  CHECK(done.status != 130);
  CHECK_THAT(done.err, !Contains("is over"));
  CHECK(std::filesystem::exists(run.checkpoints() / "latest"));
}

TEST_CASE("ending: signals that were ignored at the start stay ignored", "[ending]") {
  std::string numbers;
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    numbers += std::to_string(number) + " ";
  }
  const ScriptRun run(ending(
      "if ctx.step == 1 then for number in ('" + numbers + "'):gmatch('%d+') do ffi.C.kill(ffi.C.getpid(), tonumber(number)) end end",
      "train = { max_steps = 3 },"));
  const Finished done = under(run, "trap '' " + numbers);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out + done.err, !Contains("stopping after this step"));
  CHECK(run.toy.series("s", "loss").size() == 3);
}

TEST_CASE("ending: a part that asks for itself is told with its circle", "[ending]") {
  struct Case {
    const char* script;
    const char* says;
  };
  const auto circle = GENERATE(values<Case>({
      {"kf.register.attention('rec', function(a) return kf.nn.attention(a.config.model, { layer = a.layer }) end)\n"
       "return { extends = 'toy.toml', model = { attention = 'rec' } }",
       "s.lua:2: attention 'rec' is built from itself: attention 'rec' asks for attention 'rec'"},
      {"kf.register.mlp('rec', function(a) return kf.nn.mlp('rec', a.dim, a.hidden_dim) end)\n"
       "return { extends = 'toy.toml', model = { activation = 'rec' } }",
       "s.lua:2: mlp 'rec' is built from itself"},
      {"kf.register.norm('rec', function(a) return kf.nn.norm('rec', a.dim) end)\n"
       "return { extends = 'toy.toml', model = { norm_type = 'rec' } }",
       "s.lua:2: norm 'rec' is built from itself"},
      {"kf.register.norm('a', function(a) return kf.nn.mlp('b', a.dim, a.dim) end)\n"
       "kf.register.mlp('b', function(a) return kf.nn.norm('a', a.dim) end)\n"
       "return { extends = 'toy.toml', model = { norm_type = 'a' } }",
       "is built from itself: norm 'a' asks for mlp 'b' asks for norm 'a'"},
      {"kf.register.mlp('rec', function(a) return kf.nn.moe(a.config.model, { num_experts = 2 }) end)\n"
       "return { extends = 'toy.toml', model = { activation = 'rec' } }",
       "mlp 'rec' is built from itself"},
  }));
  CAPTURE(circle.script);
  const ScriptRun run(circle.script);
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains(circle.says));
  CHECK(done.err.size() < 3000);
}

TEST_CASE("ending: a part that runs itself in its forward is named", "[ending]") {
  const ScriptRun run(
      "kf.register.attention('rec', function(a) return kf.nn.module{ forward = function(self, x)\n"
      "return kf.nn.attention(a.config.model, { layer = a.layer })(x) end } end)\n" +
      job("model = { attention = 'rec' }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("s.lua:2: attention 'rec' runs itself without an end: ") && Contains("stack overflow"));
  CHECK(done.err.size() < 6000);
}

TEST_CASE("ending: exit() in a script itself is told, and is no success", "[ending]") {
  const ScriptRun run("local ffi = require('ffi')\nffi.cdef[[ void exit(int); ]]\nffi.C.exit(0)\nreturn {}");
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("exit() was called by what ran") && Contains("in s.lua"));
  run.write("os.exit(0)");
  CHECK(run.go().status == 0);
  run.write("os.exit(4)");
  CHECK(run.go().status == 4);
}

TEST_CASE("ending: what is no file is not read as a script's code", "[ending]") {
  const char* const code = GENERATE("dofile('pipe.lua')", "assert(loadfile('pipe.lua'))", "require('pipe')");
  const ScriptRun run(std::string("\n") + code + "\nreturn {}");
  const Finished done = under(run, "mkfifo pipe.lua");
  INFO(code << ": " << done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("pipe.lua: it is a pipe") && Contains("s.lua:3"));
}

TEST_CASE("ending: coroutines in coroutines without an end are an error, which the script may catch", "[ending]") {
  const std::string how = GENERATE("coroutine.wrap(deep)()", "assert(coroutine.resume(coroutine.create(deep)))");
  const ScriptRun run("local function deep() return " + how + " end\nprint('> ' .. tostring(pcall(deep)))\ndeep()\nreturn {}");
  const Finished done = run.go();
  INFO(done.err.substr(0, 2000));
  CHECK(done.status == 3);
  CHECK(ScriptRun::said(done) == "false\n");
  CHECK_THAT(done.err, Contains("C stack overflow") && Contains("s.lua:"));
  CHECK(done.err.size() < 6000);
}

TEST_CASE("ending: Lua and the program that call each other without an end are told before the stack is full", "[ending]") {
  const ScriptRun run(
      "local x = kf.zeros(2)\n"
      "local function again() return kf.autograd.fn({ forward = function(ctx, y) again() return y end, backward = print })(x) end\n"
      "again()\nreturn {}");
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("s.lua:") && Contains("stack overflow"));
}

TEST_CASE("ending: a recursion through Lua's library ends with Lua's own message", "[ending]") {
  const char* const body = GENERATE("local function f(s) return (('a'):gsub('a', f)) end f('a')",
                                    "local function f() table.sort({ 1, 2, 3 }, f) return false end f()");
  const ScriptRun run(ending(body, "train = { max_steps = 1 },"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("stack overflow") && Contains("hook 'ender'"));
}

TEST_CASE("ending: the name of a save is checked in the hook that asks for it", "[ending]") {
  const ScriptRun run(ending(
      "for _, name in ipairs({ 'latest', 'step_3', 'a/b', '.x', '' }) do print('> ' .. tostring(pcall(ctx.request_save, ctx, name))) end "
      "ctx:request_save('latest')",
      "train = { max_steps = 1 },"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(ScriptRun::said(done) == "false\nfalse\nfalse\nfalse\ntrue\n");
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("s.lua:4: ctx:request_save: the name") && Contains("hook 'ender'"));
}

TEST_CASE("ending: a hook that changes the working folder moves nothing of the run", "[ending]") {
  const ScriptRun run(
      "local ffi = require('ffi')\nffi.cdef[[ int chdir(const char*); ]]\n" +
      job("eval = { enabled = false }, train = { max_steps = 2 }, metrics = { sinks = { 'csv' } }, hooks = { { name = 'mover',\n"
          "on_step_end = function(ctx) if ctx.step == 1 then ffi.C.chdir('/') end end } }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("a hook changed the working folder to /"));
  CHECK(run.toy.series("s", "loss").size() == 2);
  CHECK(std::filesystem::exists(run.checkpoints() / "step_2"));
}

TEST_CASE("ending: small limits of stack and address space end with a message, or do not end", "[ending]") {
  const ScriptRun run(job("train = { max_steps = 1 }, eval = { enabled = false }"));
  const Finished stack = under(run, "ulimit -s 128");
  INFO(stack.err);
  CHECK(stack.status == 0);
  for (const std::string kilobytes : {"300000", "400000", "600000"}) {
    const Finished space = under(run, "ulimit -v " + kilobytes, "--run.name=v" + kilobytes);
    INFO(kilobytes << ": " << space.out << space.err);
    CHECK(space.status < 128);
    CHECK_THAT(space.err, !Contains("terminate called"));
    if (space.status != 0) {
      CHECK_THAT(space.err, Contains("memory"));
    }
  }
}

TEST_CASE("ending: no number depends on the locale that a script sets", "[ending]") {
  const ScriptRun run(
      "print('> ' .. tostring((os.setlocale('de_DE.UTF-8') or ''):find('de_DE') ~= nil))\n"
      "local ffi = require('ffi')\nffi.cdef[[ char* setlocale(int, const char*); ]]\n"
      "print('> ' .. tostring(pcall(os.setlocale, 'de_DE.UTF-8', 'numeric')))\n" +
      job("eval = { enabled = false }, train = { max_steps = tonumber(kf.args[1]) }, metrics = { sinks = { 'csv' } },"
          "hooks = { { name = 'loc', state = function() return { x = 0.25, y = 1e-5 } end,\n"
          "load = function(s) print('> ' .. tostring(s.x == 0.25 and s.y == 1e-5)) end,\n"
          "on_step_end = function(ctx) ffi.C.setlocale(6, 'de_DE.UTF-8') ctx:log({ quarter = 0.25 }) end } }"));
  Options options;
  options.cwd = run.toy.folder();
  const Finished made =
      kf::test::run({"bash", "-c", "mkdir loc; localedef -i de_DE -f UTF-8 loc/de_DE.UTF-8; test -e loc/de_DE.UTF-8/LC_NUMERIC"}, options);
  if (made.status != 0) {
    WARN("localedef makes no de_DE.UTF-8 here: skipped");
    return;
  }
  options.env = {{"LOCPATH", (run.toy.folder() / "loc").string()}};
  const Finished first = kf::test::run(run.toy.command({"s.lua", "--", "2"}), options);
  INFO(first.out << first.err);
  REQUIRE(first.status == 0);
  CHECK(ScriptRun::said(first) == "true\nfalse\n");
  const Finished second = kf::test::run(run.toy.command({"s.lua", "--", "4"}), options);
  INFO(second.out << second.err);
  CHECK(second.status == 0);
  CHECK_THAT(ScriptRun::said(second), Contains("false\ntrue\n"));
  const auto quarters = run.toy.series("s", "quarter");
  CHECK(quarters.size() == 4);
  for (const auto& [step, text] : quarters) {
    CHECK(text == "0.25");
  }
}
