// What parts written in Lua keep in checkpoints, and transforms of batches, with the real program.

#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "e2e/script_run.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::job;
using kf::test::ScriptRun;

namespace {

/// What state.json says of what parts keep.
std::string kept(const ScriptRun& run, const std::string& checkpoint) {
  const std::string text = run.toy.read("runs/s/checkpoints/" + checkpoint + "/state.json");
  const std::size_t at = text.find("\n  \"parts/");
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find("\n  \"train\":", at) - at);
}

/// counter(f): a table with the state n, which every call of f raises; f gets n.
constexpr const char* kCounter = R"(local nn = kf.nn
local function counter(t)
  t.n = 0
  t.state = function() return { n = t.n, word = "n" .. t.n } end
  t.load = function(s) assert(s.word == "n" .. s.n) t.n = s.n end
  return t
end
local function module(t)
  t.n = 0
  t.state = function(self) return { n = self.n } end
  t.load = function(self, s) self.n = s.n end
  return nn.module(t)
end
)";

}  // namespace

TEST_CASE("state: parts of every kind keep theirs, and a run goes on bit for bit", "[state]") {
  // Each part makes its result depend on how often it was called: whatever is lost shows in the losses.
  const ScriptRun run(std::string(kCounter) + R"(
kf.register.block("x", function(a)
  local m = a.config.model
  return module({
    norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = a.layer }),
    inner = nn.list({ module({ forward = function(self, x) self.n = self.n + 1 return x * (1 + 0.01 * self.n) end }) }),
    moe = nn.moe(m, { layer = a.layer }),
    forward = function(self, x, ctx)
      if self.training then self.n = self.n + 1 end
      local h = x + self.attention(self.norm(x), ctx) * (1 + 0.1 * self.n)
      return self.inner[1](h) + self.moe(h)
    end,
  })
end)
for _, kind in ipairs({ "mlp", "norm", "attention" }) do
  kf.register[kind]("x", function(a)
    return module({
      scale = nn.parameter({ a.dim }, { init = "ones" }),
      forward = function(self, x) self.n = self.n + 1 return x * self.scale * (1 + 0.01 * self.n) end,
    })
  end)
end
kf.register.router("x", function(a)
  return module({
    gate = nn.linear(a.dim, a.num_experts),
    forward = function(self, x)
      self.n = self.n + 1
      return self.gate(x):softmax(-1):mul(1 + 0.01 * self.n):topk(a.top_k, -1)
    end,
  })
end)
local function called(by) -- a function with a state
  local t = counter({})
  t.n, t[1] = nil, nil
  local n = 0
  return { function(...) n = n + 1 return by(n, ...) end, state = function() return n end, load = function(s) n = s end }
end
kf.register.loss("x", function() return called(function(n, logits, labels)
  local sum, count = kf.losses.cross_entropy(logits, labels)
  return sum * (1 + 0.01 * n), count
end) end)
kf.register.optimizer("x", function()
  local n = 0
  return { tensors = { "m" }, state = function() return n end, load = function(s) n = s end, step = function(g)
    n = n + 1
    kf.op._foreach_lerp_(g.state.m, g.grads, 0.1)
    kf.op._foreach_add_(g.params, g.state.m, { alpha = -g.lr * (1 + 0.1 * n) })
  end }
end)
kf.register.scheduler("x", function() return called(function(n, step) return 1 / (n + step) end) end)
kf.register.dataset("x", function(a)
  local t = counter({ size = 400 })
  t.get = function(i)
    t.n = t.n + 1
    local ids = {}
    for k = 0, a.seq_len do ids[k + 1] = (i + k * t.n) % 256 end
    return ids
  end
  return t
end)
kf.register.transform("x", function() return called(function(n, batch)
  batch.tokens:add_(n % 3):remainder_(256)
  return batch
end) end)
kf.register.tokenizer("x", function()
  local t = counter({ vocab_size = 256, eos_id = 0 })
  t.encode = function(text) t.n = t.n + 1 return { text:byte(1, 40) } end
  t.decode = function(ids) return string.char(unpack(ids)) end
  return t
end)
kf.register.sampler("x", function() return called(function(n, logits) return { n % 256 } end) end)
kf.register.metric("x", function()
  local t, n = {}, 0
  t.every, t.state, t.load = 1, function() return n end, function(s) n = s end
  t.compute = function() n = n + 1 return n end
  return t
end)
kf.register.sink("x", function()
  local n = 0
  return { write = function(row) n = n + row.step end, state = function() return n end, load = function(s) n = s end }
end)
kf.register.ckpt_strategy("x", function() return called(function(n) return n % 3 == 0 end) end)
kf.register.phase("x", function()
  local n = 0
  return { steps = 9, lr_scale = function() n = n + 1 return 1 / n end, stop_when = function() n = n + 1 return false end,
    state = function() return n end, load = function(s) n = s end }
end)
local seen = 0
local hook = { name = "h", on_step_end = function(ctx)
  seen = seen + 1
  ctx:log({ seen = seen })
  if ctx.step % 2 == 0 then print("> " .. table.concat({ ctx:generate("ab", { max_new_tokens = 2 }):byte(1, -1) }, " ")) end
end, state = function() return seen end, load = function(s) seen = s end }
)" + job(R"(train = { max_steps = 6, grad_accum_steps = 1, loss_fn = "x" }, eval = { enabled = false }, checkpoint = { strategy = "x", keep_last_n = 9 },
  model = { block = "x", norm_type = "x", moe_router = "x", num_experts = 2, moe_top_k = 1, activation = "x", n_kv_heads = 4 },
  data = { tokenizer_path = "lua:x", batch_transforms = { "x" }, datasets = { { name = "a", dataset = "x" }, { name = "b", path = "text" } } },
  optimizer = { name = "x" }, scheduler = { name = "x" }, generate = { strategy = "x" }, metrics = { extra = { "x" }, sinks = { "x" } },
  phases = { "x" }, hooks = { hook },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::string all = kept(run, "step_6");
  for (const std::string kind : {"block", "norm", "router", "loss", "optimizer", "scheduler", "dataset", "transform", "tokenizer",
                                 "sampler", "metric", "sink", "ckpt_strategy", "phase", "mlp"}) {
    CAPTURE(kind, all);
    CHECK(all.find("\"parts/" + kind + ".x\":") != std::string::npos);
  }
  CHECK(all.find("\"parts/block.x#2\":") != std::string::npos);
  CHECK(all.find("\"parts/block.x:inner.0\":") != std::string::npos);
  const auto loss = run.toy.series("s", "loss");
  REQUIRE(fs::exists(run.checkpoints() / "step_3"));
  run.forget_after(3);
  const Finished again = run.go();
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  CHECK(again.err.find("resumed from") != std::string::npos);
  CHECK(kept(run, "step_6") == all);
  CHECK(run.toy.series("s", "loss") == loss);
  CHECK(run.toy.series("s", "seen").at(6) == "6.0");
  const std::string said = ScriptRun::said(done);
  CHECK(said.substr(said.find('\n') + 1) == ScriptRun::said(again));  // what step 2 said came before
  CHECK(said.size() > 10);
}

TEST_CASE("state: a roll-back takes what parts keep back, and a model's own parts are kept, too", "[state]") {
  const ScriptRun run(std::string(kCounter) + R"(
kf.register.model("m", function(a)
  local v = a.config.model.vocab_size
  return module({ emb = nn.embedding(v, 8), out = nn.linear(8, v), forward = function(self, t)
    if self.training then self.n = self.n + 1 end
    return self.out(self.emb(t)) * (1 + 0.01 * self.n)
  end })
end)
local back = false
)" + job(R"(train = { max_steps = 5, grad_accum_steps = 1 }, model = { model_type = "m" }, checkpoint = { interval = 2 }, eval = { enabled = false },
  hooks = { { on_step_end = function(ctx) if ctx.step == 3 and not back then back = true ctx:request_rollback("to see") end end } },)"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(kept(run, "step_5").find("\"n\": 5") != std::string::npos);
}

TEST_CASE("state: a part that had nothing to keep at a checkpoint is told so when the run goes back to it, not when it goes on",
          "[state]") {
  const ScriptRun run(R"(
local peak
kf.register.scheduler("s", function() return { function(step)
  if step >= 3 and not peak then peak = step end
  return 1
end, state = function() return peak end, load = function(s) peak = s print("> load " .. tostring(s)) end } end)
local back = false
)" + job(R"(train = { max_steps = 6 }, scheduler = { name = "s" }, checkpoint = { interval = 2 }, eval = { enabled = false },
  hooks = { { on_step_end = function(ctx)
    if ctx.step == 4 and not back then back = true print("> peak " .. tostring(peak)) ctx:request_rollback("to see") print("> asked") end
  end } },)"));
  Finished done = run.go();  // step 4 saves no checkpoint, because it goes back
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "peak 3\nasked\nload nil\n");
  run.forget_after(2);
  done = run.go();
  CHECK(done.status == 0);
  CHECK(ScriptRun::said(done) == "peak 3\nasked\nload nil\n");  // nothing at the resume itself
}

TEST_CASE("state: half of it, or what no file can hold, is an error of the script", "[state]") {
  struct Fault {
    const char* script;
    const char* message;
  };
  const auto fault = GENERATE(values<Fault>(
      {{"kf.register.scheduler('x', function() return { function() return 1 end, state = function() end } end)\n",
        "s.lua:2: scheduler 'x': state and load belong together: what state() returns is given to load() when a run goes on; 'load' is "
        "missing"},
       {"kf.register.scheduler('x', function() return { function() return 1 end, stat = function() end } end)\n",
        "s.lua:2: scheduler 'x': no key 'stat' beside the function; did you mean 'state'?"},
       {"kf.register.scheduler('x', function() return { function() return 1 end, load = print, state = function() return { a = { "
        "kf.ones(2) } } end } end)\n",
        "s.lua:2: scheduler 'x': its state: 'a.1' is a tensor float32 (2); only booleans, numbers, strings and tables have a place there: "
        "t:tolist() makes one of it"},
       {"kf.register.scheduler('x', function() return { function() return 1 end, load = print, state = function() return { f = print } end "
        "} end)\n",
        "s.lua:2: scheduler 'x': its state: 'f' is a function; only booleans, numbers, strings and tables have a place there"},
       {"kf.register.scheduler('x', function() return { function() return 1 end, load = print, state = function() return { 1, 2, nil, 4 } "
        "end "
        "} end)\n",
        "scheduler 'x': its state is a list with gaps; false can stand for a missing item"},
       {"kf.register.scheduler('x', function() return { function() return 1 end, load = print, state = function()\nerror('oh') end } "
        "end)\n",
        "s.lua:3: oh"}}));
  const ScriptRun run(fault.script +
                      job("train = { max_steps = 1, grad_accum_steps = 1 }, scheduler = { name = 'x' }, eval = { enabled = false },"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find(fault.message) != std::string::npos);
}

TEST_CASE("state: a script in a folder with quotes finds what its parts kept when its lines have moved", "[state]") {
  const ScriptRun run("");
  const std::string part = R"(kf.register.scheduler("x", function()
  local n = 0
  return { function() n = n + 1 return 1 / n end, state = function() return n end, load = function(s) n = s print("> " .. n) end }
end)
)";
  const auto go = [&](const std::string& above, const std::string& steps) {
    run.toy.write("it's/s.lua", "local kf = require('kf')\n" + above + part +
                                    "return { extends = '../toy.toml', scheduler = { name = 'x' }, eval = { enabled = false } }\n");
    return run.toy.host({"it's/s.lua", "--train.max_steps=" + steps});
  };
  REQUIRE(go("", "2").status == 0);
  const Finished again = go("\n\n", "4");
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(ScriptRun::said(again) == "2\n");
  CHECK(again.err.find("which this job does not have") == std::string::npos);
}

TEST_CASE("rng: a run draws what its seed gives, whatever the script drew before; a script draws the same each time it is started",
          "[state]") {
  const std::string script = R"(kf.register.hook("draw", function()
  return { on_step_end = function() print("> run " .. kf.rng:random()) end }
end)
local function run(name, seed)
  kf.run({ extends = "toy.toml", run = { name = name }, train = { max_steps = 1, seed = seed }, eval = { enabled = false }, hooks = { "draw" } })
end
print("> script " .. kf.rng:random())
run("a", 1)
print("> script " .. kf.rng:random())
run("b", 1)
run("c", 2)
)";
  const ScriptRun run(script);
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  std::vector<std::string> drawn;
  std::istringstream lines(ScriptRun::said(done));
  for (std::string line; std::getline(lines, line);) {
    drawn.push_back(line);
  }
  REQUIRE(drawn.size() == 5);
  CHECK(drawn[0] != drawn[2]);
  CHECK(drawn[1] == drawn[3]);  // runs of one seed
  CHECK(drawn[1] != drawn[4]);
  CHECK(ScriptRun::said(run.go()) == drawn[0] + "\n" + drawn[2] + "\n");  // all runs are complete: the script's own draws are the same
}

TEST_CASE("batch transform: the model sees what it gives, evaluation does not, and a run goes on bit for bit", "[transform]") {
  const std::string script = R"(kf.register.transform("mask", function(a)
  return function(batch)
    assert(batch.training and batch.tokens:size(0) == 4 and #batch.samples == 4 and batch.doc_ids == nil)
    assert(batch.sources[1] == "a" or batch.sources[1] == "b")
    print("> " .. batch.index)
    local hit = kf.rand(batch.tokens:size()):lt(a.options.share) -- drawn from kf.rng, which checkpoints keep
    batch.labels:masked_fill_(hit:logical_not(), -100)
    batch.tokens = batch.tokens:masked_fill(hit, 256)
    return batch
  end
end, { fields = { { "share", "float", default = 0.3 } } })
kf.register.transform("short", function() return function(batch)
  return { tokens = batch.tokens[{ kf.all, { 0, 16 } }], labels = batch.labels[{ kf.all, { 0, 16 } }] }
end end)
)";
  const char* more = R"(train = { max_steps = 6, grad_accum_steps = 2 }, checkpoint = { interval = 3 }, eval = { interval = 6 },
  data = { num_workers = 2, batch_transforms = { "mask", "short" },
    datasets = { { name = "a", path = "text/a.txt" }, { name = "b", path = "text/b.txt" } } },)";
  const ScriptRun run(script + job(more));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
  CHECK(done.out.find("batches through mask, short") != std::string::npos);
  CHECK(run.toy.series("s", "tokens").at(6) == "768");  // 2 x 4 x 16 a step
  const auto loss = run.toy.series("s", "loss");
  run.forget_after(3);
  const Finished again = run.go();
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  CHECK(ScriptRun::said(again) == "6\n7\n8\n9\n10\n11\n");
  CHECK(run.toy.series("s", "loss") == loss);
  const Finished evaluated = run.toy.host({"eval", "runs/s", "--eval.steps=1"});  // without the script
  INFO(evaluated.err);
  CHECK(evaluated.status == 0);
  run.write(script + job(std::string(more) + "run = { name = 'other' }, transform = { mask = { share = 0.5 } },"));
  REQUIRE(run.go().status == 0);
  CHECK(run.toy.series("other", "loss") != loss);
}

TEST_CASE("batch transform: an evaluation goes through those of eval.batch_transforms", "[transform]") {
  const ScriptRun run(R"(kf.register.transform("x", function() return function(batch)
  print("> " .. tostring(batch.training) .. " " .. batch.index)
  return batch
end end)
)" + job("train = { max_steps = 2 }, eval = { interval = 2, batch_transforms = { 'x' } },"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(ScriptRun::said(done) == "false 0\nfalse 1\n");
}

TEST_CASE("batch transform: what cannot be a batch is an error of the script", "[transform]") {
  struct Fault {
    const char* body;
    const char* message;
  };
  const std::string lead = "s.lua:2: transform 'x'";
  const auto fault = GENERATE(values<Fault>(
      {{"batch.tokens:fill_(1)",
        " must return a batch (a table with tokens and labels), got nil; labels:fill_(-100) makes one count for nothing"},
       {"return { tokens = batch.tokens:float(), labels = batch.labels }",
        ": tokens of the batch it returns must be int64 (4, any length), got tensor float32 (4, 32)"},
       {"batch.labels = batch.labels[{ kf.all, { 0, 5 } }] return batch",
        ": labels of the batch it returns must be int64 (4, 32), got tensor int64 (4, 5)"},
       {"batch.tokens = batch.tokens + 1000 return batch",
        ": tokens of the batch it returns must be ids from 0 to 256 (model.vocab_size - 1), got 1"},
       {"batch.labels:fill_(-1) return batch",
        ": labels of the batch it returns must be ids from 0 to 256 (model.vocab_size - 1), or -100 for none, got -1 to -1"},
       {"batch.tokens = batch.tokens:repeat_interleave(3, 1) batch.labels = batch.labels:repeat_interleave(3, 1) return batch",
        "transform 'x' made a batch of 96 positions; model.max_seq_len is 64"},
       {"return batch.text:upper()", "s.lua:3: a batch has no 'text': a transform of documents is named in transforms of a source"},
       {"return batch.token:float()", "s.lua:3: attempt to index field 'token' (a nil value)"}}));
  const ScriptRun run("kf.register.transform('x', function() return function(batch)\n" + std::string(fault.body) + "\nend end)\n" +
                      job("train = { max_steps = 2 }, data = { batch_transforms = { 'x' } }, eval = { enabled = false },"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK(done.err.find((fault.message[0] == ' ' || fault.message[0] == ':' ? lead : "") + fault.message) != std::string::npos);
  const bool by_function = std::string(fault.message).find("96 positions") == std::string::npos;
  CHECK((done.err.find("in s.lua:2: transform 'x', micro-batch 0") != std::string::npos) == by_function);
}
