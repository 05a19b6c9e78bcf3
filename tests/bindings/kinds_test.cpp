// Parts of the run from Lua: data sets, transforms, tokenizers, metrics, sinks, strategies, phases, plans.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>

#include "bindings/context/rows.h"
#include "config/plan/plan.h"
#include "data/sequence/dataset.h"
#include "data/source/transform.h"
#include "data/tokenizer/tokenizer.h"
#include "metrics/sink.h"
#include "train/loop/metric.h"
#include "train/loop/phase.h"

#include "fixture.h"

using namespace kf;
using kf::test::error_of;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

/// A script that registers one part `x` of a kind whose factory is `function(a) <body> end`.
struct OnePart {
  OnePart(const std::string& kind, const std::string& body, const std::string& options = "{}") {
    f.run("kf = require('kf')\nkf.register." + kind + "('x', function(a)\n" + body + "\nend, " + options + ")");
  }
  template <class Factory, class... More>
  auto make(Registry<Factory> Registries::*kind, More&&... more) {
    return f.part(kind, "x", std::forward<More>(more)...);
  }
  template <class F>
  std::string error(F&& body) {
    return first_line(error_of(f, body));
  }

  ScriptFixture f;
};

std::vector<std::int64_t> window_of(const Dataset& data, std::int64_t index, std::size_t length) {
  std::vector<std::int64_t> window(length);
  data.get(index, window);
  return window;
}

}  // namespace

TEST_CASE("dataset: samples come from get, any of them at any time", "[kinds]") {
  OnePart part("dataset",
               "return { size = 50, get = function(i) local t = {} for k = 1, a.seq_len + 1 do t[k] = (i + k) % 97 end return t end }");
  part.f.config.model.vocab_size = 97;
  const auto data = part.make(&Registries::dataset, 4);
  CHECK(data->size() == 50);
  CHECK(window_of(*data, 7, 5) == std::vector<std::int64_t>{8, 9, 10, 11, 12});
  CHECK(window_of(*data, 0, 5) == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  CHECK(window_of(*data, 7, 5) == std::vector<std::int64_t>{8, 9, 10, 11, 12});
}

TEST_CASE("dataset: wrong samples are errors that name the sample", "[kinds]") {
  const auto get_error = [](const std::string& value) {
    OnePart part("dataset", "return { size = 5, get = function(i) return " + value + " end }");
    part.f.config.model.vocab_size = 10;
    const auto data = part.make(&Registries::dataset, 2);
    return part.error([&] { window_of(*data, 3, 3); });
  };
  const std::string lead = "recipe.lua:2: dataset 'x': get(3)";
  CHECK(get_error("nil") == lead + " must give a list of ids (or an int64 tensor), got nil");
  CHECK(get_error("{ 1, 2 }") == lead + " must give 3 ids (seq_len + 1), got 2");
  CHECK(get_error("{ 1, 2, 10 }") == lead + ": the id 10 is not between 0 and 9");
  CHECK(get_error("{ 1, 2.5, 3 }") == lead + ": item 2 must be an id, got number 2.5");
  CHECK(get_error("(error('oh'))").starts_with("recipe.lua:3: oh"));  // in brackets: a tail call would have no line of its own
  OnePart bad("dataset", "return { get = print }");
  CHECK(bad.error([&] { bad.make(&Registries::dataset, 2); }) ==
        "recipe.lua:2: dataset 'x': 'size' must be a whole number from 1 on, got nil");
}

TEST_CASE("transform: a document is changed, or dropped", "[kinds]") {
  OnePart part("transform", "return function(doc) if #doc.text < 3 then return nil end doc.text = doc.text:upper() return doc end");
  const auto transform = part.make(&Registries::transform);
  std::string text = "some";
  CHECK(transform->apply(text));
  CHECK(text == "SOME");
  text = "ab";
  CHECK_FALSE(transform->apply(text));
  OnePart bad("transform", "return function(doc) return 5 end");
  const auto wrong = bad.make(&Registries::transform);
  CHECK(bad.error([&] { wrong->apply(text); }) ==
        "recipe.lua:2: transform 'x' must return a document (a table with text) or nil, got number 5");
}

TEST_CASE("tokenizer: ids and text go both ways", "[kinds]") {
  OnePart part(
      "tokenizer",
      "return { vocab_size = 27, eos_id = 26, encode = function(s) local t = {} for i = 1, #s do t[i] = s:byte(i) - 97 end return t end,"
      " decode = function(ids) local s = '' for _, id in ipairs(ids) do s = s .. string.char(97 + id) end return s end }");
  const auto tokenizer = part.make(&Registries::tokenizer);
  CHECK(tokenizer->encode("abz") == std::vector<std::int64_t>{0, 1, 25});
  CHECK(tokenizer->decode(std::vector<std::int64_t>{2, 0, 1}) == "cab");
  CHECK(tokenizer->vocab_size() == 27);
  CHECK(tokenizer->eos_id() == 26);
  CHECK(part.error([&] { tokenizer->encode("A"); }) == "recipe.lua:2: tokenizer 'x': encode(): the id -32 is not between 0 and 26");
}

TEST_CASE("metric: a number stands under its name, a table under name/key", "[kinds]") {
  OnePart one("metric", "return { every = 4, compute = function(ctx) return ctx.step * 2 end }");
  const auto metric = one.make(&Registries::metric);
  CHECK(metric->every() == 4);
  HookContext context;
  context.state.step = 8;
  CHECK(metric->compute(context) == Values{{"x", 16}});
  OnePart two("metric", "return { compute = function(ctx) return { a = 1, b = 2 } end }");
  const auto table = two.make(&Registries::metric);
  CHECK(table->compute(context) == Values{{"x/a", 1}, {"x/b", 2}});
  Values logged;
  context.log = [&](const Values& values) { logged = values; };
  const auto hook = metric_hook("x", two.make(&Registries::metric), 10);
  CHECK(hook->wants(Event::step_end, 20));
  CHECK_FALSE(hook->wants(Event::step_end, 21));
  hook->call(Event::step_end, context);
  CHECK(logged == Values{{"x/a", 1}, {"x/b", 2}});
  OnePart bad("metric", "return { compute = function() return 'x' end }");
  const auto wrong = bad.make(&Registries::metric);
  CHECK(bad.error([&] { wrong->compute(context); }) ==
        "recipe.lua:2: metric 'x': compute() must return a number or a table of name = number, got 'x'");
}

TEST_CASE("sink: it gets every row, and the end", "[kinds]") {
  OnePart part("sink", "got = {} return { write = function(row) got[#got + 1] = row end, close = function() closed = a.dir end }");
  const auto sink = part.make(&Registries::sink, "runs/toy");
  StepRow row;
  row.step = 3;
  row.loss = 2.5;
  row.extra = {{"mine", 7}};
  sink->row(row);
  sink->eval(EvalResult{3, 2.75, 15.6, 64});
  sink->end({});
  part.f.run("assert(#got == 2 and got[1].loss == 2.5 and got[1].mine == 7 and got[2].eval.loss == 2.75 and closed == 'runs/toy')");
  OnePart bad("sink", "return { wrte = print }");
  CHECK(bad.error([&] { bad.make(&Registries::sink, ""); }) == "recipe.lua:2: sink 'x': no key 'wrte'; did you mean 'write'?");
}

TEST_CASE("sink: it hears of everything that it has a function for", "[kinds]") {
  OnePart part("sink", R"(
    local heard = {}
    function told() return table.concat(heard, "; ") end
    local function note(...)
      heard[#heard + 1] = string.format(...)
    end
    return {
      begin = function(run)
        note("begin %s %s in %s: %d of %d, %d weights, %s", run.id, run.name, run.dir, run.completed_steps, run.max_steps, run.n_params, run.job_toml)
      end,
      write = function(row) note("write %d %s", row.step, tostring(row.eval)) end,
      eval = function(row) note("eval %d %g", row.step, row.eval.loss) end,
      saved = function(step, path) note("saved %d %s", step, path) end,
      rewind = function(step) note("rewind %d", step) end,
      close = function(result) note("close %s %d %d", result.status, result.steps, #result.history) end,
    })");
  const auto sink = part.make(&Registries::sink, "runs/toy");
  config::Plan plan;
  plan.name = "toy";
  plan.dir = "runs/toy";
  plan.max_steps = 8;
  sink->begin({part.f.config, plan, "id-1", "the job", 99, 3});
  StepRow row;
  row.step = 4;
  sink->row(row);
  sink->eval(EvalResult{4, 2.75, 15.6, 64});
  sink->before_save();
  sink->saved(4, "runs/toy/step_4");
  sink->rewind(2);
  sink->step_over(3);
  sink->end({.status = "complete", .reason = "", .step = 8});
  part.f.run(
      "assert(told() == 'begin id-1 toy in runs/toy: 3 of 8, 99 weights, the job; write 4 nil; eval 4 2.75; saved 4 runs/toy/step_4; "
      "rewind 2; close complete 8 0', told())");
}

TEST_CASE("sink: an error in any of its functions names it, and what it draws is its own", "[kinds]") {
  OnePart part("sink",
               "local kf = require('kf') local function draw() kf.rng:random() if broken then error('oh') end end\n"
               "return { begin = draw, write = draw, eval = draw, saved = draw, rewind = draw, close = draw }");
  const auto sink = part.make(&Registries::sink, "runs/toy");
  const config::Plan plan;
  StepRow row;
  row.step = 4;
  const std::vector<std::pair<std::string, std::function<void()>>> calls{
      {"begin()",
       [&] {
         sink->begin({part.f.config, plan, "", "", 0, 0});
       }},
      {"write() at step 4", [&] { sink->row(row); }},
      {"eval() at step 5",
       [&] {
         sink->eval(EvalResult{5, 1, 1, 1});
       }},
      {"saved() at step 6", [&] { sink->saved(6, "p"); }},
      {"rewind() to step 2", [&] { sink->rewind(2); }},
      {"close()", [&] { sink->end({}); }},
  };
  for (const auto& [what, call] : calls) {
    CAPTURE(what);
    const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
    call();
    CHECK(at::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
  }
  part.f.run("broken = true");
  for (const auto& [what, call] : calls) {
    const std::string error = error_of(part.f, call);
    CHECK(error.find("oh") != std::string::npos);
    CHECK(error.find("in recipe.lua:2: sink 'x', " + what) != std::string::npos);
  }
}

TEST_CASE("ckpt_strategy: it says which steps are saved, with true or false", "[kinds]") {
  OnePart part("ckpt_strategy", "return function(step) return step % 7 == 0 end");
  const CheckpointStrategy due = part.make(&Registries::ckpt_strategy);
  CHECK(due(0, 100, 14));
  CHECK_FALSE(due(0, 100, 15));
  OnePart bad("ckpt_strategy", "return function(step) return step end");
  const CheckpointStrategy wrong = bad.make(&Registries::ckpt_strategy);
  CHECK(bad.error([&] { wrong(0, 1, 5); }) == "recipe.lua:2: ckpt_strategy 'x' must return true or false, got number 5 at step 5");
}

TEST_CASE("phase: functions of a phase see the run, and its other keys are its entry", "[kinds]") {
  ScriptFixture f;
  f.run(R"(local kf = require("kf")
kf.register.phase("x", { steps = 40, stop_when = function(ctx) return ctx.step > 5 end, lr_scale = function(t) return 1 - t end })
kf.register.phase("y", function(a) return { freeze = { "layers.*" }, lr_scale = 0.5 } end)
)");
  const auto x = f.part(&Registries::phase, "x");
  HookContext context;
  context.state.step = 5;
  CHECK_FALSE(x->stop_when(context));
  context.state.step = 6;
  CHECK(x->stop_when(context));
  CHECK(x->lr_scale(0.25) == 0.75);
  CHECK(x->entry().empty());  // a table is known when the job is loaded
  const config::Node& steps = *f.registries.phase.get("x").info.entry.find("steps");
  CHECK(std::get<std::int64_t>(steps.value) == 40);
  CHECK(f.shown(config::to_text(steps.origin)) == "recipe.lua:2");
  const auto y = f.part(&Registries::phase, "y");
  CHECK_FALSE(y->has_stop_when());
  CHECK(y->lr_scale(0.5) == std::nullopt);
  CHECK(y->entry().size() == 2);
  CHECK(f.registries.phase.get("y").info.entry.empty());
}

TEST_CASE("parallel_plan: patterns with one of four words", "[kinds]") {
  OnePart part("parallel_plan", "return { ['*.q_proj.weight'] = 'colwise', ['*.o_proj.weight'] = 'rowwise' }");
  const ParallelPlan plan = part.make(&Registries::parallel_plan);
  CHECK(plan == ParallelPlan{{"*.o_proj.weight", "rowwise"}, {"*.q_proj.weight", "colwise"}});
  OnePart bad("parallel_plan", "return { a = 'colwis' }");
  CHECK(bad.error([&] { bad.make(&Registries::parallel_plan); }) ==
        "recipe.lua:2: parallel_plan 'x': 'a' = 'colwis'; did you mean 'colwise'?");
}
