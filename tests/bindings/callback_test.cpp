// ctx: what a callback may read and ask for.
#include "fixture.h"

using namespace kf;
using kf::test::error_of;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

/// Calls the body of a hook with a filled context.
struct Callback {
  explicit Callback(const std::string& body) {
    f.run("kf = require('kf')\nkf.register.hook('h', { on_step_end = function(ctx, ...)\n" + body +
          "\nend, on_eval_end = function(ctx, eval) kf_eval = { eval, ctx.eval } end, on_checkpoint_save = function(ctx, path) "
          "ctx:stop(path) end,"
          " on_train_end = function(ctx, why) ctx:stop(why) end })");
    hook = f.hook("h");
    context.state = {41, 4096};
    context.lr = 3e-4;
    context.n_params = 1000;
    context.max_steps = 60;
    context.loss = [] { return 2.5; };
    context.grad_norm = [] { return 0.75; };
    context.controls = &controls;
    context.metrics = [] {
      StepRow row;
      row.loss = 2.5;
      row.extra = {{"mine", 7}};
      return row;
    };
    context.evaluate = [] { return EvalResult{41, 3.5, 33.1, 64}; };
    context.report = [this](double value) { reported = value; };
    context.log = [this](const std::vector<std::pair<std::string, double>>& values) { logged = values; };
    context.generate = [this](const std::vector<std::string>& prompts, const GenerateOptions& o) {
      options = o;
      std::vector<Completion> answers;
      for (const std::string& prompt : prompts) {
        answers.push_back({prompt + "...", {7, 8}, {-0.5, -1.5}, 3, Completion::End::stop});
      }
      return answers;
    };
  }
  void call(Event event = Event::step_end) {
    hook->call(event, context);
    said = controls.stop.value_or(controls.saves.empty() ? "" : "save " + controls.saves.front());
  }
  std::string error() {
    return first_line(error_of(f, [&] { call(); }));
  }

  ScriptFixture f;
  std::unique_ptr<Hook> hook;
  HookContext context;
  Controls controls;
  double reported = 0;
  std::string said;
  std::vector<std::pair<std::string, double>> logged;
  GenerateOptions options;
};

}  // namespace

TEST_CASE("ctx: fields and methods give what the run knows", "[ctx]") {
  Callback c(
      "ctx:log({ at = ctx.step, seen = ctx.tokens, rate = ctx.lr, n = ctx.n_params, max = ctx.max_steps, its_loss = ctx:loss(), norm = "
      "ctx:grad_norm() })"
      " assert(ctx.eval == nil)");
  c.call();
  const std::vector<std::pair<std::string, double>> expected = {{"at", 41},     {"its_loss", 2.5}, {"max", 60},   {"n", 1000},
                                                                {"norm", 0.75}, {"rate", 3e-4},    {"seen", 4096}};
  CHECK(c.logged == expected);
}

TEST_CASE("ctx: the last evaluation is a field, and an argument of its event", "[ctx]") {
  Callback c(
      "local e, again = ctx.eval, ctx.eval assert(e == again) ctx:log({ at = e.step, its_loss = e.loss, perplexity = e.perplexity, seen = "
      "e.tokens })");
  c.context.eval = EvalResult{40, 3.25, 25.79, 512};
  c.call(Event::eval_end);
  c.call();
  const std::vector<std::pair<std::string, double>> expected = {{"at", 40}, {"its_loss", 3.25}, {"perplexity", 25.79}, {"seen", 512}};
  CHECK(c.logged == expected);
  c.context.eval = EvalResult{50, 3.0, 20.08, 512};
  c.call();
  CHECK(c.logged[1].second == 3.0);
  c.f.run("assert(kf_eval[1] == kf_eval[2] and kf_eval[1].loss == 3.25)");
  EvalResult sets{60, 2.5, 12.2, 99};
  sets.accuracy = 0.5;
  sets.sets = {{.step = 60, .loss = 1.5, .bits_per_byte = 1.25, .name = "code"}};
  c.context.eval = sets;
  c.call(Event::eval_end);
  c.f.run(
      "local e = kf_eval[1] assert(e.accuracy == 0.5 and e.bits_per_byte == nil and e.code.loss == 1.5 and e.code.bits_per_byte == 1.25)");
}

TEST_CASE("ctx: saving and ending hand over the path and the reason", "[ctx]") {
  Callback c("");
  c.context.path = "runs/x/step_5";
  c.call(Event::checkpoint_save);
  CHECK(c.said == "runs/x/step_5");
  c.context.message = "complete";
  c.call(Event::train_end);
  CHECK(c.said == "complete");
}

TEST_CASE("ctx: controls reach the run", "[ctx]") {
  Callback c("ctx:request_save('best')");
  c.call();
  CHECK(c.said == "save best");
  Callback stop("ctx:stop('good enough')");
  stop.call();
  CHECK(stop.said == "good enough");
  Callback generate(
      "local text = ctx:generate('The ', { max_new_tokens = 24, temperature = 0.5, top_k = 3, top_p = 0.9, seed = 5 }) ctx:stop(text)");
  generate.call();
  CHECK(generate.said == "The ...");
  CHECK(generate.options.max_new_tokens == 24);
  CHECK(generate.options.temperature == 0.5);
  CHECK(generate.options.top_k == 3);
  CHECK(generate.options.top_p == 0.9);
  CHECK(generate.options.seed == 5);
  CHECK_FALSE(generate.options.shorten);
  Callback list(
      "local texts, infos = ctx:generate({ 'a', 'b' }, { stop = { 'x', 'y' }, min_p = 0.1, repetition_penalty = 1.5 })"
      " local text, info = ctx:generate('c')"
      " assert(text == 'c...' and info.ids[2] == 8 and info.logprobs[1] == -0.5 and info.stopped == 'stop' and info.prompt_tokens == 3)"
      " ctx:stop(texts[1] .. texts[2] .. #infos)");
  list.context.generate_defaults.shorten = true;
  list.call();
  CHECK(list.said == "a...b...2");
  CHECK(list.options.shorten);  // of the second call: the length was a default
}

TEST_CASE("ctx: every request is noted, and nothing happens before the step boundary", "[ctx]") {
  Callback c(
      "ctx:set_lr_scale(0.5) ctx:set_mixture({ web = 2, code = 1 }) ctx:set_loss_weight('z_loss', 0.01) ctx:freeze('layers.*')"
      " ctx:unfreeze('re:norm') ctx:request_eval() ctx:request_rollback('spike') ctx:report(1.5) ctx:request_save()");
  c.call();
  CHECK(c.controls.lr_scale == 0.5);
  const std::map<std::string, double> weights = {{"web", 2}, {"code", 1}};
  CHECK(c.controls.mixture == weights);
  CHECK(c.controls.loss_weights.at("z_loss") == 0.01);
  REQUIRE(c.controls.freezing.size() == 2);
  CHECK(c.controls.freezing[0].pattern == "layers.*");
  CHECK(c.controls.freezing[0].frozen);
  CHECK_FALSE(c.controls.freezing[1].frozen);
  CHECK(c.controls.eval);
  CHECK(c.controls.rollback == "spike");
  CHECK(c.reported == 1.5);
  CHECK(c.controls.saves == std::vector<std::string>{""});
  Callback skip("");
  skip.f.run("kf.register.hook('s', { on_backward_end = function(ctx) ctx:skip_update('too large') end })");
  skip.f.hook("s")->call(Event::backward_end, skip.context);
  CHECK(skip.controls.skip_update == "too large");
}

TEST_CASE("ctx: more of what a run knows: epoch, phase, seconds, metrics, an evaluation at will", "[ctx]") {
  Callback c(
      "assert(ctx.phase == 'main') local m = ctx:metrics() local e = ctx:evaluate()"
      " ctx:log({ epochs = ctx.epoch, took = ctx.seconds, mine = m.mine, evaluated = e.loss })");
  c.context.epoch = 1.25;
  c.context.seconds = 9;
  c.context.phase = "main";
  c.call();
  const std::vector<std::pair<std::string, double>> expected = {{"epochs", 1.25}, {"evaluated", 3.5}, {"mine", 7}, {"took", 9}};
  CHECK(c.logged == expected);
  CHECK(Callback("assert(ctx.phase == nil) local x = ctx.epohc").error() ==
        "recipe.lua:3: ctx has no field 'epohc'; did you mean 'epoch'?");
}

TEST_CASE("ctx: requests are checked where they are made", "[ctx]") {
  for (const std::string name :
       {"loss", "step", "time", "eval", "eval.x", "eval/x", "eval_loss", "eval_code_loss", "data_wait", "time/eval"}) {
    CHECK(Callback("ctx:log({ ['" + name + "'] = 1 })").error() ==
          "recipe.lua:3: ctx:log: '" + name + "' is a name that rows have themselves (docs/metrics.md lists them); choose another");
  }
  CHECK(Callback("ctx:stop(('x'):rep(1001))").error() == "recipe.lua:3: ctx:stop: the reason has 1001 bytes; 1000 are the most");
  CHECK(Callback("ctx:set_lr_scale(-1)").error() ==
        "recipe.lua:3: ctx:set_lr_scale: the factor must be a finite number from 0 on, got number -1");
  CHECK(Callback("ctx:set_mixture({ web = -1 })").error() ==
        "recipe.lua:3: ctx:set_mixture: the weight of 'web' must be a finite number from 0 on, got -1");
  CHECK(Callback("ctx:set_loss_weight('z_los', 1)").error() ==
        "recipe.lua:3: ctx:set_loss_weight: no term 'z_los'; did you mean 'z_loss'?");
  CHECK(Callback("ctx:skip_update('x')").error() ==
        "recipe.lua:3: ctx:skip_update() means nothing at step_end; call it in on_backward_end");
  CHECK(Callback("ctx:freeze(3)").error() == "recipe.lua:3: ctx:freeze: expected a name pattern (a string), got number 3");
  CHECK(Callback("ctx:report('x')").error() == "recipe.lua:3: ctx:report: expected a number, got 'x'");
  CHECK(Callback("ctx:request_evla()").error() == "recipe.lua:3: ctx has no field 'request_evla'; did you mean 'request_eval'?");
}

TEST_CASE("ctx: misuse is an error at the script's line", "[ctx]") {
  CHECK(Callback("return ctx.setp").error() == "recipe.lua:3: ctx has no field 'setp'; did you mean 'step'?");
  CHECK(Callback("ctx.step = 3").error() == "recipe.lua:3: ctx is read-only: cannot set 'step'");
  CHECK(Callback("local x = ctx.loss()").error() == "recipe.lua:3: ctx:loss: call it with a colon, not a dot");
  CHECK(Callback("ctx:log(5)").error() == "recipe.lua:3: ctx:log: expected a table of name = number, got number 5");
  CHECK(Callback("ctx:log({ a = 'x' })").error() == "recipe.lua:3: ctx:log: 'a' must be a number, got 'x'");
  CHECK(Callback("ctx:stop(5)").error() == "recipe.lua:3: ctx:stop: expected a reason (a string), got number 5");
  CHECK(Callback("ctx:request_save('../x')").error() ==
        "recipe.lua:3: ctx:request_save: the name \"../x\" becomes a folder; use at most 100 letters, digits, '_', '-' and '.', the "
        "first no '.'");
  CHECK(Callback("ctx:generate('a', { temprature = 1 })").error() ==
        "recipe.lua:3: ctx:generate: no option 'temprature'; did you mean 'temperature'?");
  CHECK(Callback("ctx:generate('a', { top_p = 1.5 })").error() ==
        "recipe.lua:3: ctx:generate: top_p must be a number from 0 to 1, got number 1.5");
  CHECK(Callback("ctx:generate('a', { top_k = -1 })").error() ==
        "recipe.lua:3: ctx:generate: top_k must be a whole number from 0 on, got number -1");
  CHECK(Callback("ctx:generate('a', { stop = { 'x', 5 } })").error() ==
        "recipe.lua:3: ctx:generate: stop 2 must be a string, got number 5");
  CHECK(Callback("ctx:generate('a', { stop = '' })").error() == "recipe.lua:3: ctx:generate: stop has an empty text, which would end all");
  CHECK(Callback("ctx:generate(5)").error() == "recipe.lua:3: ctx:generate: a prompt must be a string or a list of strings, got number 5");
  CHECK(Callback("ctx:generate('a', { repetition_penalty = 0 })").error() ==
        "recipe.lua:3: ctx:generate: repetition_penalty must be above 0");
}

TEST_CASE("ctx: a method that an event cannot answer says so", "[ctx]") {
  Callback c("local x = ctx:loss()");
  c.context.loss = {};
  CHECK(c.error() == "recipe.lua:3: ctx:loss() means nothing at step_end");
}

TEST_CASE("ctx: an error that left no frame behind has the hook's place", "[ctx]") {
  CHECK(Callback("return ctx.loss()").error() == "recipe.lua:2: hook 'h': ctx:loss: call it with a colon, not a dot");
}

TEST_CASE("ctx: used after its callback it is an error, even from a later script", "[ctx]") {
  Callback c("kept = ctx");
  c.call();
  CHECK(first_line(c.f.error("\nreturn kept.step")) ==
        "recipe.lua:2: this ctx belongs to a callback that has returned; keep what you need of it, not ctx itself");
  CHECK(first_line(c.f.error("kept:stop('x')")).find("belongs to a callback that has returned") != std::string::npos);
}

TEST_CASE("ctx: it is the same object in every callback, so a call allocates nothing", "[ctx]") {
  Callback c("calls = (calls or 0) + 1 assert(first == nil or first == ctx) first = ctx local x = ctx.step + ctx.lr + ctx.tokens");
  c.f.run("collectgarbage() collectgarbage('stop') used = collectgarbage('count')");
  for (int i = 0; i < 10000; ++i) {
    c.call();
  }
  c.f.run("assert(calls == 10000) grown = collectgarbage('count') - used assert(grown < 64, grown) collectgarbage('restart')");
}
