// Scripts in control of runs, with the real program: events, phases, requests, parts of the run, faults, many runs.

#include <catch2/catch.hpp>

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/csv.h"
#include "e2e/script_run.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::job;
using kf::test::ScriptRun;
using kf::test::Toy;

TEST_CASE("script: every event comes at its place", "[script]") {
  const ScriptRun run(R"(local hook = {}
for _, event in ipairs({ "train_begin", "step_begin", "micro_end", "backward_end", "step_end", "log", "eval_end", "checkpoint_save",
  "checkpoint_load", "phase_change", "train_end", "error" }) do
  hook["on_" .. event] = function(ctx) print("> " .. event .. " " .. ctx.step) end
end
)" + job("hooks = { hook }, train = { max_steps = 2 }, eval = { interval = 2 }, phases = { { name = 'a', steps = 1 }, { name = 'b' } }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) ==
        "train_begin 0\nstep_begin 0\nmicro_end 0\nmicro_end 0\nbackward_end 0\nstep_end 1\nlog 1\nphase_change 1\n"
        "step_begin 1\nmicro_end 1\nmicro_end 1\nbackward_end 1\nstep_end 2\neval_end 2\nlog 2\ncheckpoint_save 2\ntrain_end 2\n");
}

TEST_CASE("script: an error in a callback of any event ends the run with 3, its line, and the last checkpoint as it was", "[script]") {
  const std::string event = GENERATE("train_begin", "step_begin", "micro_end", "backward_end", "step_end", "log", "eval_end",
                                     "checkpoint_save", "checkpoint_load", "phase_change", "train_end");
  CAPTURE(event);
  const std::string shape =
      "checkpoint = { interval = 2 }, eval = { interval = 5 }, train = { max_steps = 6 }, "
      "phases = { { name = 'a', steps = 5 }, { name = 'b' } }";
  const bool late = event == "step_end" || event == "log" || event == "eval_end" || event == "phase_change";  // behind the save of step 4
  const ScriptRun run(
      "local function fail() local x = nil return x.field end\n" +
      job(shape + ", hooks = { {\non_" + event + " = function(ctx) if ctx.step >= " + (late ? "5" : "4") + " then fail() end end } }"));
  if (event == "train_begin" || event == "checkpoint_load") {  // they come at the start: let an earlier run have got to step 4
    run.write(job(shape));
    REQUIRE(run.go().status == 0);
    run.forget_after(4);
    run.write("local function fail() local x = nil return x.field end\n" +
              job(shape + ", hooks = { {\non_" + event + " = function(ctx) fail() end } }"));
  }
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:2: attempt to index local 'x' (a nil value)") != std::string::npos);
  CHECK(done.err.find("from s.lua:4 in") != std::string::npos);
  CHECK(done.err.find("on_" + event + " at step") != std::string::npos);
  if (event == "train_end" || event == "checkpoint_save") {
    return;  // the checkpoint of that step is complete
  }
  CHECK(fs::read_symlink(run.checkpoints() / "latest") == fs::path("step_4"));
  if (event != "backward_end" && event != "phase_change") {
    return;  // from the same checkpoint all go on alike
  }
  run.write(job(shape));
  const Finished again = run.go();
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(again.err.find("resumed from") != std::string::npos);
}

TEST_CASE("script: errors in the functions of parts end the run with 3 and their line", "[script]") {
  struct Fault {
    const char* kind;
    const char* body;  // of the factory; line 3 holds the error
    const char* choose;
  };
  const auto fault = GENERATE(values<Fault>({
      {"scheduler", "return function(step) if step == 1 then\nerror('oh') end return 1 end", "scheduler = { name = 'x' }"},
      {"metric", "return { every = 2, compute = function()\nerror('oh') end }", "metrics = { extra = { 'x' } }"},
      {"sink", "return { write = function()\nerror('oh') end }", "metrics = { sinks = { 'x' } }"},
      {"sink", "return { write = function() end, close = function()\nerror('oh') end }", "metrics = { sinks = { 'x' } }"},
      {"ckpt_strategy", "return function()\nerror('oh') end", "checkpoint = { strategy = 'x' }"},
      {"phase", "return { steps = 4, stop_when = function()\nerror('oh') end }", "phases = { 'x' }"},
      {"phase", "return { steps = 4, lr_scale = function()\nerror('oh') end }", "phases = { 'x' }"},
      {"hook", "return { on_log = print, load = print, state = function()\nerror('oh') end }", "hooks = { 'x' }"},
      {"dataset", "return { size = 100, get = function()\nerror('oh') end }", "data = { datasets = { { dataset = 'x' } } }"},
      {"transform", "return function()\nerror('oh') end", "data = { datasets = { { path = 'text', transforms = { 'x' } } } }"},
      {"tokenizer", "return { vocab_size = 9, decode = print, encode = function()\nerror('oh') end }",
       "data = { tokenizer_path = 'lua:x' }"},
      {"parallel_plan", "local y =\nerror('oh')", "distributed = { plan = 'x' }"},
  }));
  CAPTURE(fault.kind, fault.body);
  const ScriptRun run("kf.register." + std::string(fault.kind) + "('x', function(a) " + fault.body + " end)\n" +
                      job(std::string("train = { max_steps = 4 }, ") + fault.choose));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:3: oh") != std::string::npos);
  CHECK(done.err.find("s.lua:2: " + std::string(fault.kind) + " 'x'") != std::string::npos);
}

TEST_CASE("script: a part of any kind that fails in the middle of a run leaves a traceback and the last checkpoint", "[script]") {
  struct Fault {
    const char* kind;
    const char* body;  // of the factory; fail() raises an error from step 4 on
    const char* choose;
  };
  const auto fault = GENERATE(values<Fault>({
      {"model",
       "local v = a.config.model.vocab_size return nn.module{ emb = nn.embedding(v, 8), out = nn.linear(8, v), "
       "forward = function(self, t) fail() return self.out(self.emb(t)) end }",
       "model = { model_type = 'x' }"},
      {"block", "return nn.module{ forward = function(_, x) fail() return x end }", "model = { block = 'x' }"},
      {"attention", "return nn.module{ forward = function(_, x) fail() return x end }", "model = { attention = 'x' }"},
      {"mlp", "return nn.module{ forward = function(_, x) fail() return x end }", "model = { activation = 'x' }"},
      {"norm", "return function(x) fail() return x + 0 end", "model = { norm_type = 'x' }"},
      {"router", "return function(x) fail() local n = x:size(0) return kf.ones({ n, 1 }), kf.zeros({ n, 1 }, { dtype = 'int64' }) end",
       "model = { num_experts = 2, moe_top_k = 1, moe_router = 'x' }"},
      {"loss", "return function(logits, labels) fail() return kf.losses.cross_entropy(logits, labels) end", "train = { loss_fn = 'x' }"},
      {"optimizer", "return { step = function(g) fail() kf.op._foreach_mul_(g.params, 0.999) end }", "optimizer = { name = 'x' }"},
      {"scheduler", "return function() fail() return 1 end", "scheduler = { name = 'x' }"},
      {"dataset", "return { size = 100, get = function() fail() local t = {} for i = 0, a.seq_len do t[i + 1] = i end return t end }",
       "data = { datasets = { { dataset = 'x' } } }"},
      {"sampler", "return function(logits) fail() return logits:argmax(-1) end", "generate = { strategy = 'x' }"},
      {"metric", "return { every = 1, compute = function() fail() return 1 end }", "metrics = { extra = { 'x' } }"},
      {"sink", "return { write = function() fail() end }", "metrics = { sinks = { 'x' } }"},
      {"ckpt_strategy", "return function(step) fail() return step % 2 == 0 end", "checkpoint = { strategy = 'x' }"},
      {"phase", "return { steps = 9, stop_when = function() fail() return false end }", "phases = { 'x' }"},
      {"hook", "return { on_backward_end = function() fail() end }", ""},
  }));
  CAPTURE(fault.kind);
  const std::string hooks = fault.kind == std::string("hook") ? "watch, 'x'" : "watch";
  const auto script = [&](const char* last) {
    return std::string("local late, nn = false, kf.nn\nlocal function fail() if late then error('oh') end end\nkf.register.") + fault.kind +
           "('x', function(a) " + fault.body + " end)\nlocal watch = { on_step_end = function(ctx) late = ctx.step >= " + last +
           " if ctx.step ~= 3 then ctx:generate('li', { max_new_tokens = 2 }) end end }\n" +
           "local j = { extends = 'toy.toml', hooks = { " + hooks + " }, " + fault.choose +
           " }\nj.train = j.train or {} j.train.max_steps = 6\nj.checkpoint = j.checkpoint or {} j.checkpoint.interval = 2\n"
           "j.metrics = j.metrics or {} j.metrics.log_interval = 1\nreturn j\n";
  };
  const auto without_generate = [&](std::string text) {  // not with layers without a cache, nor where nothing turns ids into text
    const std::string kind = fault.kind;
    if (kind == "model" || kind == "block" || kind == "attention" || kind == "dataset") {
      const std::size_t at = text.find(" if ctx.step ~= 3");
      text.erase(at, text.find(" end }", at) - at);
    }
    return text;
  };
  const ScriptRun run(without_generate(script("3")));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:3: oh") != std::string::npos);
  CHECK(done.err.find("from s.lua:4 in") != std::string::npos);
  CHECK(done.err.find("s.lua:4: " + std::string(fault.kind) + " 'x'") != std::string::npos);
  CHECK(fs::read_symlink(run.checkpoints() / "latest") == fs::path("step_2"));
  const std::set<std::string> with_state{"model", "optimizer", "dataset", "hook"};
  if (with_state.count(fault.kind) == 0) {
    return;
  }
  run.write(without_generate(script("99")));
  const Finished again = run.go({"--checkpoint.accept_changes=[\"code\"]"});
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(again.err.find("resumed from") != std::string::npos);
}

TEST_CASE("script: phases change what they say, and a run goes on in the middle of one", "[script]") {
  const ScriptRun run(job(R"(train = { max_steps = 12 }, checkpoint = { interval = 5 },
  data = { datasets = { { name = "a", path = "text/a.txt" }, { name = "b", path = "text/b.txt" } } },
  hooks = { { name = "watch", on_step_end = function(ctx) print("> " .. ctx.step .. " " .. tostring(ctx.phase)) end } },
  phases = {
    { name = "frozen", steps = 3, freeze = { "layers.*" }, lr_scale = 0.5 },
    { name = "short", steps = 6, seq_len = 16, batch_size = 2, mixture = { a = 3 }, stop_when = function(ctx) return ctx.step == 8 end },
    { name = "cooldown", lr_scale = function(t) return 1 - t end },
  },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) ==
        "1 frozen\n2 frozen\n3 frozen\n4 short\n5 short\n6 short\n7 short\n8 short\n9 cooldown\n10 cooldown\n11 cooldown\n12 cooldown\n");
  const auto tokens = run.toy.series("s", "tokens");
  CHECK(tokens.at(3) == "768");                                    // 4 x 32 x 2 a step
  CHECK(std::stoi(tokens.at(4)) - std::stoi(tokens.at(3)) == 64);  // 2 x 16 x 2
  CHECK(std::stoi(tokens.at(9)) - std::stoi(tokens.at(8)) == 256);
  const auto loss = run.toy.series("s", "loss");
  const auto lr = run.toy.series("s", "lr");
  CHECK(std::stod(lr.at(9)) > std::stod(lr.at(12)));
  run.forget_after(5);
  const Finished again = run.go();
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  CHECK(again.err.find("resumed from") != std::string::npos);
  CHECK(ScriptRun::said(again).rfind("6 short\n7 short\n8 short\n9 cooldown\n", 0) == 0);
  CHECK(run.toy.series("s", "loss") == loss);
  CHECK(run.toy.series("s", "lr") == lr);
}

TEST_CASE("script: requests of hooks hold from the next step on, and over a resume", "[script]") {
  const ScriptRun run(
      job(R"(train = { max_steps = 10 }, checkpoint = { interval = 4 }, scheduler = { name = "none" }, eval = { interval = 100 },
  data = { datasets = { { name = "a", path = "text/a.txt" }, { name = "b", path = "text/b.txt" } } },
  hooks = { { name = "steer", on_step_end = function(ctx)
    if ctx.step == 2 then
      ctx:set_lr_scale(0.5)
      ctx:set_mixture({ a = 0.1 })
      ctx:set_loss_weight("z_loss", 0.01)
      ctx:freeze("layers.0.*")
      ctx:request_eval()
      ctx:request_save("two")
    elseif ctx.step == 6 then
      ctx:unfreeze("*")
    end
  end, on_eval_end = function(ctx, eval) print("> eval " .. ctx.step) end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "eval 2\neval 10\n");
  CHECK(fs::exists(run.checkpoints() / "two"));
  const auto lr = run.toy.series("s", "lr");
  CHECK(std::stod(lr.at(2)) == 3e-3);
  CHECK(std::stod(lr.at(3)) == 1.5e-3);
  CHECK(std::stod(run.toy.series("s", "z_loss").at(2)) == 0);
  CHECK(std::stod(run.toy.series("s", "z_loss").at(3)) > 0);
  const auto loss = run.toy.series("s", "loss");
  run.forget_after(4);
  const Finished again = run.go();
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  CHECK(run.toy.series("s", "loss") == loss);
}

TEST_CASE("script: a roll-back goes to the newest checkpoint and leaves out the data since then", "[script]") {
  const ScriptRun run(job(R"(train = { max_steps = 8 }, checkpoint = { interval = 3 }, eval = { enabled = false },
  hooks = { {
    on_backward_end = function(ctx)
      if ctx.step == 4 and not kf_done then
        kf_done = true
        ctx:skip_update("a spike")
        ctx:request_rollback("a spike")
      end
    end,
    on_step_end = function(ctx) print("> " .. ctx.step) end,
  } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "1\n2\n3\n4\n5\n4\n5\n6\n7\n8\n");
  CHECK(done.err.find("step 5: no update, a spike") != std::string::npos);
  CHECK(done.err.find("rolled back to step_3 (a spike)") != std::string::npos);
  CHECK(run.toy.series("s", "loss").size() == 8);  // each step once
  const ScriptRun plain(job("train = { max_steps = 8 }, checkpoint = { interval = 3 }, eval = { enabled = false },"));
  REQUIRE(plain.go().status == 0);
  CHECK(run.toy.series("s", "loss").at(3) == plain.toy.series("s", "loss").at(3));
  CHECK(run.toy.series("s", "loss").at(4) != plain.toy.series("s", "loss").at(4));  // other data
}

TEST_CASE("script: data, metric, sink and strategy of one's own serve a run, which resumes bit for bit", "[script]") {
  const ScriptRun run(R"(kf.register.dataset("counting", function(a)
  return { size = 500, get = function(i)
    local t = {}
    for k = 1, a.seq_len + 1 do t[k] = (i + k * (1 + i % 7)) % 257 end
    return t
  end }
end)
kf.register.transform("upper", function(a)
  return function(doc) doc.text = doc.text:upper():rep(a.options.times) return doc end
end, { fields = { { "times", "int", default = 1, min = 1 } } })
kf.register.metric("twice", function() return { every = 2, compute = function(ctx) return 2 * ctx.step end } end)
kf.register.sink("rows", function(a)
  return { write = function(row) print("> " .. row.step .. (row.eval and " eval" or "")) end, close = function() print("> end") end }
end)
kf.register.ckpt_strategy("fours", function() return function(step) return step % 4 == 0 end end)
)" + job(R"(train = { max_steps = 6 }, eval = { interval = 6 }, metrics = { extra = { "twice" }, sinks = { "rows", "csv" } }, checkpoint = { strategy = "fours" },
  transform = { upper = { times = 2 } },
  data = { datasets = { { name = "numbers", dataset = "counting", weight = 0.3 }, { name = "text", path = "text", weight = 0.7, transforms = { "upper" } } } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "1\n2\n3\n4\n5\n6\n6 eval\nend\n");
  CHECK(run.toy.series("s", "twice") == std::map<int, std::string>{{2, "4.0"}, {4, "8.0"}, {6, "12.0"}});
  CHECK(fs::exists(run.checkpoints() / "step_4"));
  const std::string csv = run.toy.read("runs/s/metrics.csv");
  CHECK(csv.rfind("step,loss,", 0) == 0);
  const auto loss = run.toy.series("s", "loss");
  run.forget_after(4);
  REQUIRE(run.go().status == 0);
  CHECK(run.toy.series("s", "loss") == loss);
  CHECK_FALSE(run.toy.read("runs/s/metrics.csv").empty());
}

TEST_CASE("script: columns that come later are in metrics.csv, with the evaluation of each set", "[script]") {
  const ScriptRun run(job(R"(train = { max_steps = 6 }, metrics = { sinks = { "csv" } }, eval = { interval = 3, datasets = {
    { name = "one", path = "text", file_pattern = "a.txt" }, { name = "two", path = "text", file_pattern = "b.txt", interval = 6 } } },
  averaging = { type = "ema", beta = 0.5 },
  hooks = { { name = "c", on_step_end = function(ctx) if ctx.step >= 4 then ctx:log({ ["late, \"quoted\""] = ctx.step * 10 }) end end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::vector<std::vector<std::string>> lines = kf::csv_lines(run.toy.read("runs/s/metrics.csv"));
  REQUIRE(lines.size() == 7);
  const auto column = [&lines](const std::string& name) {
    const auto found = std::find(lines[0].begin(), lines[0].end(), name);
    std::vector<std::string> out;
    for (std::size_t i = 1; i < lines.size() && found != lines[0].end(); ++i) {
      out.push_back(lines[i].at(static_cast<std::size_t>(found - lines[0].begin())));
    }
    return out;
  };
  CHECK(column("late, \"quoted\"") == std::vector<std::string>{"", "", "", "40", "50", "60"});
  for (const auto& [name, step] : {std::pair("eval_one_loss", 3), std::pair("eval_two_loss", 6), std::pair("eval_ema", 3)}) {
    CAPTURE(name);
    const std::vector<std::string> cells = column(name);
    REQUIRE(cells.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(cells[i].empty() == !(i + 1 == 6 || static_cast<int>(i + 1) == step));
    }
  }
}

TEST_CASE("script: beside a loss of one's own ce is the cross entropy; evaluations and sources are too", "[script]") {
  const ScriptRun run(R"(kf.register.loss("ten", function() return function(l, y)
  local c, n = kf.losses.cross_entropy(l, y)
  return c * 10, n
end end)
)" + job(R"(train = { max_steps = 2, loss_fn = "ten" }, eval = { interval = 1, batch_size = 4 },
  data = { datasets = { { name = "a", path = "text", file_pattern = "a.txt" }, { name = "b", path = "text", file_pattern = "b.txt" } } },
  hooks = { { name = "h", on_step_end = function(ctx)
    local m = ctx:metrics()
    assert(math.abs(m["loss_fn/ten"] - 10 * m.ce) < 1e-3 and math.abs(m.loss - m["loss_fn/ten"]) < 1e-9)
    assert(math.abs(ctx:loss() - 10 * m.ce) < 1e-3)
  end, on_eval_end = function(ctx, eval) assert(eval.loss < 10) end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const auto number = [&run](const std::string& key) { return std::stod(run.toy.series("s", key).at(1)); };
  CHECK(number("loss") == Approx(10 * number("ce")).epsilon(1e-5));
  CHECK(number("loss_fn/ten") == Approx(number("loss")));
  CHECK(number("ce") < 10);  // about ln 257 before the first update
  CHECK(number("loss/a") < 10);
}

TEST_CASE("script: a step without labels has no loss, is counted, and leaves the result the last real one", "[script]") {
  const ScriptRun run(R"(kf.register.transform("mask", function() return function(b)
  if b.index >= 6 then b.labels:fill_(-100) end -- both micro-batches of step 4
  return b
end end)
local seen = {}
local r = kf.run({ extends = "toy.toml", run = { name = "s" }, train = { max_steps = 4 }, eval = { enabled = false },
  data = { batch_transforms = { "mask" } }, hooks = { { name = "h", on_step_end = function(ctx) seen[ctx.step] = tostring(ctx:loss()) end } } })
assert(next(seen) == nil or seen[4] == "nil") -- a finished run gives what is stored
assert(r.history[4].loss == nil and r.history[4].grad_norm == nil)
assert(r.loss == r.history[3].loss and r.skipped == 1 and r.history[4].skipped == 1)
print("> fine")
)");
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "fine\n");
  CHECK(run.toy.series("s", "loss").at(4) == "null");
  CHECK(run.toy.read("runs/s/result.json").find("\"loss\": null") == std::string::npos);
  const Finished again = run.go();  // the stored result
  INFO(again.err);
  CHECK(again.status == 0);
}

TEST_CASE("script: on_inf ends the run whatever the gradient is", "[script]") {
  const std::string how = GENERATE("s * (1 / 0)", "s + 1 / 0");
  const ScriptRun run(
      "local n = 0\nkf.register.loss('bad', function() return function(l, y)\n"
      "  local s, c = kf.losses.cross_entropy(l, y)\n  n = n + 1\n  return n == 3 and " +
      how + " or s, c\nend end)\n" + job("train = { loss_fn = 'bad', on_inf = 'abort', max_steps = 5 }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  CHECK(done.err.find("train.on_inf = \"abort\" ends the run here") != std::string::npos);
}

TEST_CASE("script: on_inf ends the run where one micro-batch is infinite and the next one NaN", "[script]") {
  const ScriptRun run(
      "local n = 0\nkf.register.loss('bad', function() return function(l, y)\n"
      "  local s, c = kf.losses.cross_entropy(l, y)\n  n = n + 1\n"
      "  return n == 3 and s * (1 / 0) or n == 4 and s * (0 / 0) or s, c\nend end)\n" +
      job("train = { loss_fn = 'bad', on_inf = 'abort', max_steps = 5 }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 1);
  CHECK(done.err.find("train.on_inf = \"abort\" ends the run here") != std::string::npos);
  CHECK(done.err.find("step 2: loss nan") != std::string::npos);
}

TEST_CASE("script: with fp16 an infinity that a hook writes into gradients is no overflow of the loss scale", "[script]") {
  const std::string word = GENERATE("abort", "skip");
  const ScriptRun run(job("train = { mixed_precision = 'fp16', max_steps = 3, on_inf = '" + word +
                          "' }, hooks = { { on_backward_end = function(ctx) if ctx.step == 2 then "
                          "for _, g in ctx:gradients() do g:fill_(1 / 0) end end end } }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == (word == "abort" ? 1 : 0));
  CHECK(done.err.find("overflowed fp16") == std::string::npos);
  CHECK(done.err.find(word == "abort" ? "train.on_inf = \"abort\" ends the run here" : "are not both finite") != std::string::npos);
}

TEST_CASE("script: a hook cannot log what a source of the mixture or an evaluation logs", "[script]") {
  const std::string name = GENERATE("loss/a", "data/a/tokens", "eval_loss");
  const ScriptRun run(
      job("data = { datasets = { { path = 'text/a.txt', name = 'a' }, { path = 'text/b.txt', name = 'b' } } },\n"
          "hooks = { { on_step_end = function(ctx)\nctx:log({ ['" +
          name + "'] = 1 }) end } }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:4: ctx:log: '" + name + "' is") != std::string::npos);
}

TEST_CASE("script: a tokenizer of one's own reads the text and writes what the model says", "[script]") {
  const ScriptRun run(R"(kf.register.tokenizer("letters", function(a)
  local function encode(text)
    local ids = {}
    for i = 1, #text do ids[i] = text:byte(i) % 64 end
    return ids
  end
  return { vocab_size = 65, eos_id = 64, encode = encode, decode = function(ids)
    local out = {}
    for i, id in ipairs(ids) do out[i] = string.char(64 + id % 60) end
    return table.concat(out)
  end }
end)
)" + job(R"(train = { max_steps = 2 }, model = { vocab_size = 65 }, data = { tokenizer_path = "lua:letters" },
  hooks = { { on_train_end = function(ctx) print("> " .. #ctx:generate("line", { max_new_tokens = 5, seed = 1 })) end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(done.out.find("(lua:letters)") != std::string::npos);
  CHECK(std::stoi(ScriptRun::said(done)) <= 5);
}

TEST_CASE("script: a finished run gives its stored result; a changed script or job is told", "[script]") {
  const std::string body = R"(local r = kf.run({ extends = "toy.toml", run = { name = "one" }, train = { max_steps = 4 } })
print(("> %s %d %.6f %.6f %d"):format(r.status, r.steps, r.loss, r.eval.loss, #r.history))
)";
  const ScriptRun run(body);
  const Finished first = run.go();
  INFO(first.out << first.err);
  REQUIRE(first.status == 0);
  const Finished second = run.go();
  INFO(second.out << second.err);
  REQUIRE(second.status == 0);
  CHECK(second.out.find("already complete") != std::string::npos);
  CHECK(ScriptRun::said(second) == ScriptRun::said(first));
  run.write(body + "-- changed\n");  // a comment is no code
  CHECK(ScriptRun::said(run.go()) == ScriptRun::said(first));
  run.write(body + "local function unused() end\n");
  const Finished changed = run.go();
  INFO(changed.out << changed.err);
  CHECK(changed.status == 0);  // none of its functions makes the model, the data or the loss
  CHECK(changed.err.find("warning: the script's code: s.lua: its functions have changed") != std::string::npos);
  const Finished other = run.go({"--optimizer.lr=1e-2"});
  CHECK(other.status == 2);
  CHECK(other.err.find("run.fresh = true") != std::string::npos);
  std::string longer = body;
  longer.replace(longer.find("max_steps = 4"), 13, "max_steps = 6");
  run.write(longer);
  const Finished more = run.go();
  INFO(more.out << more.err);
  CHECK(more.status == 0);
  CHECK(ScriptRun::said(more).rfind("complete 6 ", 0) == 0);
}

TEST_CASE("script: runs without a name are called after the script, in order of the calls", "[script]") {
  const ScriptRun run("for i = 1, 2 do kf.run({ extends = 'toy.toml', train = { max_steps = 1 } }) end\n");
  REQUIRE(run.go().status == 0);
  CHECK(fs::exists(run.toy / "runs/s/job.toml"));
  CHECK(fs::exists(run.toy / "runs/s-2/job.toml"));
}

TEST_CASE("script: thirty runs in one script leave nothing behind", "[script]") {
  const ScriptRun run(R"lua(local function read(path)
  local f = assert(io.open(path))
  local text = f:read("*a")
  f:close()
  return text
end
local function resident() return tonumber(read("/proc/self/status"):match("VmRSS:%s+(%d+)")) end
local function threads() return tonumber(read("/proc/self/status"):match("Threads:%s+(%d+)")) end
-- The least of some readings: the child may look before this process has closed its end of their pipe.
local function files()
  local least = math.huge
  for _ = 1, 8 do
    local p = io.popen("ls /proc/" .. read("/proc/self/stat"):match("^(%d+)") .. "/fd | wc -l")
    least = math.min(least, tonumber(p:read("*a")))
    p:close()
  end
  return least
end
-- The allocator's own ups and downs are some 12 MB, so the smallest of many readings is compared with the smallest of as many later ones.
local early, late, open, running = math.huge, math.huge, nil, nil
for i = 1, 30 do
  kf.run({ extends = "toy.toml", run = { name = "r" .. i }, train = { max_steps = 1 }, eval = { enabled = false },
    hooks = { { name = "h", on_step_end = function(ctx) ctx:log({ i = i }) end } } })
  collectgarbage()
  if i > 5 and i <= 17 then
    early = math.min(early, resident())
  elseif i > 17 then
    late = math.min(late, resident())
  end
  if i == 10 then
    open, running = files(), threads()
  end
end
print("> grown " .. (late - early < 8000 and "no" or tostring(late - early)))
print("> files " .. files() - open .. " threads " .. threads() - running)
)lua");
  kf::test::Options options;
  options.cwd = run.toy.folder();
  options.env = {{"MALLOC_ARENA_MAX", "1"}};  // threads of a run have no pools of their own, whose size is a matter of chance
  const Finished done = kf::test::run(run.toy.command({"s.lua"}), options);
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "grown no\nfiles 0 threads 0\n");
  CHECK(fs::exists(run.toy / "runs/r30/checkpoints/latest"));
}

TEST_CASE("script: a job that is wrong gives 2, a script that is wrong 3, and both say where", "[script]") {
  struct Wrong {
    const char* script;
    int status;
    const char* words;
  };
  const auto wrong = GENERATE(values<Wrong>({
      {"return { extends = 'toy.toml', train = { max_step = 5 } }", 2, "s.lua:2:42"},
      {"return { extends = 'toy.toml', phases = { { name = 'a', stop_wen = 3 } } }", 2, "stop_wen"},
      {"return { extends = 'toy.toml', phases = { { name = 'a', stop_when = 3 } } }", 2, "stop_when"},
      {"kf.register.phase('x', {\nlr_scale = -1 })\nreturn { extends = 'toy.toml', phases = { 'x' } }", 2, "s.lua:3:"},
      {"kf.register.phase('x', function() return { lr_scale = -1 } end)\nreturn { extends = 'toy.toml', phases = { 'x' } }", 3,
       "s.lua:2: phase 'x': phases[0].lr_scale (-1) must be non-negative"},
      {"return { extends = 'toy.toml', phases = { 5 } }", 3, "s.lua:2: phases[1]: a phase is a table, a name, or"},
      {"return { extends = 'toy.toml', hooks = { { on_stepend = print } } }", 3, "no event 'on_stepend'; did you mean 'on_step_end'?"},
      {"kf.register.sinc('x', function() end)", 3, "s.lua:2: no kind 'sinc'; did you mean 'sink'?"},
      {"kf.register.parallel_plan('p', function() return { ['*.query.weight'] = 'colwise' } end)\nreturn { extends = 'toy.toml', "
       "distributed "
       "= { plan = 'p' } }",
       3, "s.lua:2: parallel_plan 'p': no weight is called '*.query.weight'"},
      {"return { extends = 'toy.toml', phases = { { name = 'a', freeze = { 'layer.*' } } } }", 2, "no weight is called 'layer.*'"},
      {"return { extends = 'toy.toml', data = { datasets = { { dataset = 'countin' } } } }", 2, "no dataset 'countin'"},
      {"local x = kf.ones({ 2 }) if x < 1 then return end", 3, "s.lua:2: attempt to compare userdata with number; tensors are compared"},
      {"local x = = 3", 3, "s.lua:2: unexpected symbol near '='"},
  }));
  CAPTURE(wrong.script);
  const Finished done = ScriptRun(wrong.script).go();
  INFO(done.out << done.err);
  CHECK(done.status == wrong.status);
  CHECK(done.err.find(wrong.words) != std::string::npos);
}

TEST_CASE("script: Ctrl-C ends a callback that never returns, the second one at once", "[script]") {
  // The interpreter looks up from time to time, compiled loops do not: they need the second Ctrl-C.
  const ScriptRun run(
      job("hooks = { { on_step_end = function(ctx) require('jit').off() print('> in') io.stdout:flush() while true do "
          "collectgarbage('count') end end } },"));
  kf::test::Options options;
  options.cwd = run.toy.folder();
  kf::test::Process process(run.toy.command({"s.lua"}), options);
  REQUIRE(process.wait_for("> in"));
  process.signal(SIGINT);
  const Finished done = process.wait();
  CHECK(done.status == 3);
  CHECK(done.err.find("interrupted: this did not come to an end after Ctrl-C") != std::string::npos);
  const ScriptRun compiled(job("hooks = { { on_step_end = function(ctx) print('> in') io.stdout:flush() while true do end end } },"));
  options.cwd = compiled.toy.folder();
  kf::test::Process second(compiled.toy.command({"s.lua"}), options);
  REQUIRE(second.wait_for("> in"));
  second.signal(SIGINT);
  REQUIRE(second.wait_for("again to leave at once"));
  second.signal(SIGINT);
  CHECK(second.wait().status == 130);
}

TEST_CASE("script: os.exit in a callback is an error, since it would end the run as if it had succeeded", "[script]") {
  const ScriptRun run(job("hooks = { { on_step_end = function() os.exit(0) end } }"));
  const Finished done = run.go();
  CHECK(done.status == 3);
  CHECK(done.err.find("os.exit in a callback would lose what is not saved yet") != std::string::npos);
  const ScriptRun outside("os.exit(7)\n");
  CHECK(outside.go().status == 7);
}

TEST_CASE("script: before the first step there is no loss to ask for", "[script]") {
  const std::string method = GENERATE("loss", "grad_norm", "metrics");
  CAPTURE(method);
  const ScriptRun run(job("hooks = { { on_train_begin = function(ctx)\n ctx:" + method + "() end } }"));
  const Finished done = run.go();
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:3: ctx:" + method + "() has nothing to tell before the first step") != std::string::npos);
}

TEST_CASE("script: names that are no text are refused, in jobs and in ctx:log", "[script]") {
  const std::string key = GENERATE("a\\0b", "\\255");
  CAPTURE(key);
  const ScriptRun in_job(job("optimizer = { ['" + key + "'] = 1 }"));
  const Finished refused = in_job.go();
  CHECK(refused.status == 3);
  CHECK(refused.err.find("which is no UTF-8 text") != std::string::npos);
  const ScriptRun in_log(job("hooks = { { on_step_end = function(ctx) ctx:log{ ['" + key + "'] = 1 } end } }"));
  const Finished logged = in_log.go();
  CHECK(logged.status == 3);
  CHECK(logged.err.find("is no UTF-8 text") != std::string::npos);
}

TEST_CASE("script: a forward hook on a layer that nothing calls is told", "[script]") {
  const ScriptRun run(
      job("train = { loss_fn = 'fused_linear_cross_entropy', max_steps = 2 }, eval = { enabled = false }, hooks = { { on_train_begin = "
          "function(ctx)\nctx:register_forward_hook('output_head.proj', print) ctx:register_forward_hook('norm', function() end) end } }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK(done.err.find("s.lua:3: the forward hook on 'output_head.proj' was never called") != std::string::npos);
  CHECK(done.err.find("on 'norm' was never called") == std::string::npos);
}

TEST_CASE("script: one that trains nothing says so", "[script]") {
  const ScriptRun run("print('> hello')\n");
  const Finished done = run.go();
  CHECK(done.status == 0);
  CHECK(done.err.find("s.lua returned no job and did not call kf.run: nothing was trained") != std::string::npos);
}

TEST_CASE("script: an item behind a gap in hooks or phases is not dropped", "[script]") {
  const Toy toy;
  for (const char* list :
       {"hooks = { [1] = {}, [3] = {} }", "hooks = { nil, {} }", "phases = { [1] = { steps = 2 }, [3] = { steps = 2 } }"}) {
    (void)toy.write("gap.lua", std::string("return { extends = 'toy.toml', ") + list + " }");
    const Finished refused = toy.host({"config", "check", "gap.lua"});
    INFO(list << refused.err);
    CHECK(refused.status == 3);
    CHECK(refused.err.find("the list has gaps") != std::string::npos);
  }
  (void)toy.write("mixed.lua", "return { extends = 'toy.toml', phases = { { steps = 2 }, steps = 3 } }");
  CHECK(toy.host({"config", "check", "mixed.lua"}).err.find("a list of phases is wanted; got the key 'steps'") != std::string::npos);
}

TEST_CASE("script: config check reads the job of the first kf.run", "[script]") {
  const ScriptRun good("local r = kf.run{ extends = 'toy.toml' }\nprint(r.loss)\n");
  const Finished fine = good.toy.host({"config", "check", "s.lua"});
  CHECK(fine.status == 0);
  CHECK(fine.out.find("s.lua: no problems") != std::string::npos);
  CHECK(fine.err.find("the job of its first kf.run is read") != std::string::npos);
  const ScriptRun bad("kf.run{ extends = 'toy.toml', optimizer = { lr = -1 } }\n");
  const Finished refused = bad.toy.host({"config", "check", "s.lua"});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("optimizer.lr") != std::string::npos);
}

TEST_CASE("script: its parts are in the registry and in its help, with their fields", "[script]") {
  const ScriptRun run(
      "kf.register.router('noisy', print, { doc = 'With noise.', fields = { { 'noise', 'float', doc = 'How much.' } } })\n" + job(""));
  const Finished all = run.toy.host({"registry", "router", "s.lua"});
  CHECK(all.status == 0);
  CHECK(all.out.find("softmax_topk") != std::string::npos);
  CHECK(all.out.find("s.lua:2 With noise.\n      noise (float)  How much.") != std::string::npos);
  const Finished help = run.toy.host({"s.lua", "--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("Parts of s.lua") != std::string::npos);
  CHECK(help.out.find("      noise (float)  How much.") != std::string::npos);
  CHECK(help.out.find("softmax_topk") == std::string::npos);
  CHECK(run.toy.host({"registry", "rooter"}).err.find("did you mean 'router'?") != std::string::npos);
}

TEST_CASE("script: a run that a hook stopped says so when it is started again", "[script]") {
  const ScriptRun run(job("hooks = { { on_step_end = function(ctx) if ctx.step == 2 then ctx:stop('plateau') end end } }"));
  REQUIRE(run.go().status == 0);
  const Finished again = run.go();
  CHECK(again.status == 0);
  CHECK(again.out.find("already stopped (plateau): 2 steps") != std::string::npos);
}

TEST_CASE("script: a checkpoint's name has an end", "[script]") {
  const ScriptRun run(job("hooks = { { on_step_end = function(ctx) ctx:request_save(('x'):rep(300)) end } }"));
  const Finished done = run.go();
  CHECK(done.status == 3);
  CHECK(done.err.find("use at most 100 letters") != std::string::npos);
}

TEST_CASE("script: hooks of a script that never requires kf are given tensors", "[script]") {
  const ScriptRun run("");
  run.toy.write("s.lua",
                "return { extends = 'toy.toml', train = { max_steps = 1 }, hooks = { { on_backward_end = function(ctx)\n"
                "for _, g in ctx:gradients('norm.weight') do print('> ' .. g:dim()) end end } } }\n");
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(ScriptRun::said(done) == "1\n");
}

TEST_CASE("script: os.exit before anything was trained says so", "[script]") {
  const ScriptRun run("\nos.exit(0)\n");
  const Finished done = run.go();
  CHECK(done.status == 0);
  CHECK(done.err.find("s.lua:3: os.exit ends the script before it returned a job or called kf.run: nothing was trained") !=
        std::string::npos);
}

TEST_CASE("script: mistakes that end in a message of Lua's own get a hint and a place", "[script]") {
  struct Mistake {
    const char* body;  // of on_backward_end, from line 3 on
    const char* message;
  };
  const auto mistake = GENERATE(values<Mistake>({
      {"if ctx.loss < 3 then ctx:stop('x') end",
       "s.lua:3: attempt to compare function with number; that is a function: call it, as in ctx:loss()"},
      {"ctx:log({ x = ctx.loss + 1 })",
       "s.lua:3: attempt to perform arithmetic on field 'loss' (a function value); that is a function: call it"},
      {"for name in ctx:gradients('layer.*') do end", "s.lua:3: ctx:gradients: no weight is called 'layer.*'; near: layers."},
      {"ctx:freeze('re:(')", "s.lua:3: ctx:freeze: 're:(' is no regular expression"},
      {"jit.off() local f f = function(n) return f(n + 1) + 1 end f(1)", "s.lua:3: stack overflow\n"},
      {"local f f = function(n) return f(n + 1) + 1 end f(1)", ": stack overflow\n"},  // compiled code may be in no line: the hook's then
  }));
  const ScriptRun run("local hook = { on_backward_end = function(ctx)\n" + std::string(mistake.body) + "\nend }\n" +
                      job("train = { max_steps = 1 }, eval = { enabled = false }, hooks = { hook }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find(mistake.message) != std::string::npos);
  CHECK(done.err.size() < 1500);  // a recursion is one line of the traceback
}

namespace {

/// The program at a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const Toy& toy, const std::vector<std::string>& arguments) {
    std::vector<std::string> command = toy.command(arguments);
    std::vector<char*> argv;
    for (std::string& word : command) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const std::string folder = toy.folder().string();
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      setenv("TERM", "dumb", 1);
      setenv("HOME", folder.c_str(), 1);
      setenv("XDG_STATE_HOME", folder.c_str(), 1);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Terminal() {
    close(fd_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) { REQUIRE(write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size())); }
  /// Whether `text` comes behind what was waited for before.
  bool shows(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < end) {
      if (const std::size_t at = seen_.find(text, from_); at != std::string::npos) {
        from_ = at + text.size();
        return true;
      }
      pollfd one{fd_, POLLIN, 0};
      char buffer[4096];
      const ssize_t size = poll(&one, 1, 1000) > 0 ? read(fd_, buffer, sizeof buffer) : 0;
      if (size < 0) {
        return false;
      }
      seen_.append(buffer, static_cast<std::size_t>(size));
    }
    return false;
  }
  const std::string& seen() const { return seen_; }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  std::size_t from_ = 0;
  std::string seen_;
};

}  // namespace

TEST_CASE("script: the prompt completes names behind dots, prints values, takes = as Lua's own does, and Ctrl-C ends a line", "[script]") {
  const Toy toy;
  Terminal terminal(toy, {"lua"});
  INFO(terminal.seen());
  REQUIRE(terminal.shows("> "));
  terminal.type("kf.op.log_softma\t");
  REQUIRE(terminal.shows("kf.op.log_softmax"));
  terminal.type("(kf.zeros({ 1 }), -1)\r");
  REQUIRE(terminal.shows("tensor([0.])"));
  terminal.type("=6*7\r");
  REQUIRE(terminal.shows("\n42"));
  terminal.type("for i = 8, 9 do\r");
  REQUIRE(terminal.shows(">> "));
  terminal.type("print(i) end\r");
  REQUIRE(terminal.shows("\n9"));
  terminal.type("require('jit').off() print('in') while true do collectgarbage('count') end\r");
  REQUIRE(terminal.shows("\nin"));
  terminal.type("\x03");
  REQUIRE(terminal.shows("interrupted"));
  terminal.type("=2^10\r");
  REQUIRE(terminal.shows("\n1024"));
  terminal.type("\x04");
}

TEST_CASE("script: the end of the last phase is told, and ctx.phase is nil then", "[script]") {
  const ScriptRun run(job(R"(train = { max_steps = 3 }, eval = { enabled = false }, phases = { { name = "a", steps = 2 } },
  hooks = { { on_step_end = function(ctx) print("> " .. tostring(ctx.phase)) end,
    on_phase_change = function(ctx, name) print("> change to " .. tostring(name)) end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "a\na\nchange to nil\nnil\n");
  CHECK(done.err.find("step 2: the last phase is over; the settings of the job itself hold") != std::string::npos);
}

TEST_CASE("script: a loss that gives the mean for the sum is told so once", "[script]") {
  const std::string kind = GENERATE("sum", "mean");
  CAPTURE(kind);
  const ScriptRun run(
      "kf.register.loss('l', function() return function(logits, labels)\n"
      "  local sum, n = kf.losses.cross_entropy(logits, labels)\n  return " +
      std::string(kind == "mean" ? "sum / n" : "sum") + ", n\nend end)\n" +
      job("train = { max_steps = 2, loss_fn = 'l' }, eval = { enabled = false },"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  const std::size_t at = done.err.find("that is what a mean looks like");
  CHECK((at != std::string::npos) == (kind == "mean"));
  CHECK(done.err.find("that is what a mean looks like", at == std::string::npos ? at : at + 1) == std::string::npos);
}

TEST_CASE("script: mistakes in layers are named at their line", "[script]") {
  const ScriptRun run(
      "kf.register.mlp('m', function(a)\n  return kf.nn.module({ w = kf.ones({ a.dim }),\n    forward = function(x) return x end "
      "})\nend)\n" +
      job("model = { activation = 'm' },"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:4: nn.module: 'w' is a plain tensor, neither trained nor saved") != std::string::npos);
  CHECK(done.err.find("mlp 'm': forward must return a tensor, got the module itself; it is a method: forward = function(self, x, ctx)") !=
        std::string::npos);
  const Toy toy;
  CHECK(toy.host({"lua", "-e", "kf.zeros(1)"})
            .err.find("attempt to index global 'kf' (a nil value); begin with: local kf = require(\"kf\")") != std::string::npos);
}

TEST_CASE("script: a misspelt function of a phase names the nearest", "[script]") {
  const ScriptRun run(job("phases = { { name = 'a', steps = 3,\nstop_wen = function() return true end }, { name = 'b' } }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find("s.lua:3: phase 'phase 1': no function 'stop_wen'; did you mean 'stop_when'?") != std::string::npos);
}

TEST_CASE("script: steps that run ahead ask a strategy once each, and are told before an error is", "[script]") {
  const auto outcome = [](int ahead) {
    const ScriptRun run(R"(local n = 0
kf.register.ckpt_strategy("third", function() return function(step) n = n + 1 return n % 3 == 0 end end)
kf.register.scheduler("stops", function() return function(step) if step == 8 then error("no rate") end return 1 end end)
)" + job("checkpoint = { strategy = 'third', keep_last_n = 0 }, scheduler = { name = 'stops' }, eval = { enabled = false }, "
         "train = { max_steps = 12 }, metrics = { log_interval = 1 }, "
         "hooks = { { on_error = function(ctx) print('> ' .. ctx.step .. ' ' .. ctx:loss()) end } }"));
    const Finished done = run.go({"--train.run_ahead=" + std::to_string(ahead)});
    INFO(done.err << done.out);
    CHECK(done.status == 3);
    std::string said = ScriptRun::said(done);
    for (int step = 1; step <= 12; ++step) {
      said += fs::exists(run.checkpoints() / ("step_" + std::to_string(step))) ? std::to_string(step) + " " : "";
    }
    for (const auto& [step, loss] : run.toy.series("s", "loss")) {
      said += "\n" + std::to_string(step) + " " + loss;
    }
    return said;
  };
  const std::string expected = outcome(0);
  CHECK(expected.find("8 ") == 0);
  CHECK(expected.find("\n3 6 \n1 ") != std::string::npos);
  CHECK(outcome(3) == expected);
}
