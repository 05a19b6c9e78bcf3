// Where rows go (metrics.sinks), through the real program.

#include <catch2/catch.hpp>

#include "e2e/script_run.h"

using Catch::Contains;
using kf::test::Finished;
using kf::test::job;
using kf::test::ScriptRun;
namespace fs = std::filesystem;

namespace {

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

/// A job of eight steps with a checkpoint every four, and its result said.
std::string said_job(const std::string& sinks) {
  return "kf.register.sink('mine', function() return { write = function(row) print('> row ' .. row.step) end } end)\n"
         "local r = kf.run{ extends = 'toy.toml', run = { name = 's' }, train = { max_steps = tonumber(kf.args[1] or 8) },\n"
         "  checkpoint = { interval = 4 }, eval = { interval = 4 }, metrics = { log_interval = 4" +
         sinks +
         " } }\n"
         "print('> ' .. r.status, r.steps, #r.history, r.loss ~= nil, r.eval and r.eval.step)\n";
}

/// Whether the terminal has the table.
bool has_table(const Finished& done) { return done.out.find("step     loss") != std::string::npos; }

}  // namespace

TEST_CASE("sinks: a list of others is added to the terminal and metrics.jsonl", "[sinks]") {
  const ScriptRun run(said_job(", sinks = { 'mine' }"));
  const Finished done = good(run.go());
  CHECK(has_table(done));
  CHECK(run.toy.series("s", "loss").size() == 3);
  CHECK(ScriptRun::said(done) == "row 1\nrow 4\nrow 4\nrow 8\nrow 8\ncomplete\t8\t5\ttrue\t8\n");
  CHECK_THAT(done.err, !Contains("metrics.sinks"));
}

TEST_CASE("sinks: a run without metrics.jsonl says so, goes on, and has a result without history", "[sinks]") {
  const ScriptRun run(said_job(", sinks = { 'console', 'csv' }"));
  const Finished first = good(run.go({"--", "4"}));
  CHECK(has_table(first));
  CHECK_THAT(first.err, Contains("metrics.sinks leaves out \"jsonl\": there is no metrics.jsonl"));
  CHECK_FALSE(fs::exists(run.toy / "runs/s/metrics.jsonl"));
  CHECK(ScriptRun::said(first) == "complete\t4\t0\ttrue\t4\n");
  CHECK(ScriptRun::said(good(run.go({"--", "8"}))) == "complete\t8\t0\ttrue\t8\n");
  const Finished again = good(run.go({"--", "8"}));
  CHECK_THAT(again.out, Contains("already complete"));
  CHECK(ScriptRun::said(again) == "complete\t8\t0\ttrue\t8\n");
  fs::remove(run.toy / "runs/s/result.json");  // the checkpoint tells, but no row has the loss
  CHECK(ScriptRun::said(good(run.go({"--", "8"}))) == "complete\t8\t0\tfalse\t8\n");
  // metrics.jsonl of a later part begins where that part does.
  run.write(said_job(""));
  CHECK(ScriptRun::said(good(run.go({"--", "12"}))) == "complete\t12\t2\ttrue\t12\n");
  // What it holds is no history of a part that does not write it.
  run.write(said_job(", sinks = { 'console' }"));
  CHECK(ScriptRun::said(good(run.go({"--", "16"}))) == "complete\t16\t0\ttrue\t16\n");
  CHECK(ScriptRun::said(good(run.go({"--", "16"}))) == "complete\t16\t0\ttrue\t16\n");
}

TEST_CASE("sinks: without the console the terminal gets no rows, and the run says so", "[sinks]") {
  const ScriptRun run(said_job(", sinks = { 'jsonl' }"));
  const Finished done = good(run.go());
  CHECK_FALSE(has_table(done));
  CHECK_THAT(done.err, Contains("metrics.sinks leaves out \"console\""));
  CHECK(ScriptRun::said(done) == "complete\t8\t5\ttrue\t8\n");
}

TEST_CASE("sinks: one in Lua hears of saves, roll-backs, its state before the beginning, and the end", "[sinks]") {
  const ScriptRun run(R"(
local n = 0
kf.register.sink("x", function()
  return {
    load = function(s) n = s print("> load " .. s) end,
    begin = function(r) print("> begin " .. r.completed_steps .. " of " .. r.max_steps .. " in " .. r.dir .. " with " .. n) end,
    write = function(row) n = n + 1 print("> row " .. row.step) end,
    eval = function(row) print("> eval " .. row.step) end,
    saved = function(step, path) print("> saved " .. step .. " " .. path) end,
    rewind = function(step) print("> rewind " .. step) end,
    close = function(r) print("> close " .. r.status .. " " .. r.steps) end,
    state = function() return n end,
  }
end)
local back = kf.args[1] == nil
)" + job(R"(train = { max_steps = tonumber(kf.args[1] or 4) }, checkpoint = { interval = 2 }, eval = { interval = 4 }, metrics = { log_interval = 1, sinks = { "x" } },
  hooks = { { name = "back", on_step_end = function(ctx) if ctx.step == 3 and back then back = false ctx:request_rollback("a test") end end } },)"));
  CHECK(ScriptRun::said(good(run.go())) ==
        "begin 0 of 4 in runs/s with 0\nrow 1\nrow 2\nsaved 2 runs/s/checkpoints/step_2\nrow 3\nload 2\nrewind 2\nrow 3\nrow 4\neval 4\n"
        "saved 4 runs/s/checkpoints/step_4\nclose complete 4\n");
  CHECK(ScriptRun::said(good(run.go({"--", "5"}))) ==
        "load 4\nbegin 4 of 5 in runs/s with 4\nrow 5\neval 5\nsaved 5 runs/s/checkpoints/step_5\nclose complete 5\n");
}
