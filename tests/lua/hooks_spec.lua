--- The shipped hooks, against a run that is made of a table; and real runs of those that touch weights.
local kf = require("kf")
local T = require("kf.test")

--- A ctx of which every request is noted.
local function fake(fields)
  local ctx = { asked = {} }
  for _, name in ipairs({ "stop", "request_save", "request_rollback", "skip_update", "set_lr_scale", "freeze", "unfreeze", "log" }) do
    ctx[name] = function(self, value)
      self.asked[name] = value == nil and true or value
    end
  end
  for name, value in pairs(fields or {}) do
    ctx[name] = value
  end
  return ctx
end

T.test("loss_spike skips an update whose loss jumps, and learns from the others only", function()
  local hook = require("kf.hooks.loss_spike").new({ factor = 2, warmup = 3, action = "rollback" })
  local loss
  local ctx = fake({
    loss = function()
      return loss
    end,
  })
  for _, value in ipairs({ 4, 4, 4, 7 }) do
    loss = value
    hook.on_backward_end(ctx)
  end
  T.eq(ctx.asked, {})
  loss = 40
  hook.on_backward_end(ctx)
  T.ok(ctx.asked.skip_update:find("loss 40.000 is", 1, true))
  T.eq(ctx.asked.request_rollback, ctx.asked.skip_update)
  local kept = hook.state()
  T.eq(kept.seen, 4)
  local other = require("kf.hooks.loss_spike").new()
  other.load(kept)
  T.eq(other.state(), kept)
end)

T.test("early_stop keeps the best and stops when nothing gets better", function()
  local hook = require("kf.hooks.early_stop").new({ patience = 2, min_delta = 0.1 })
  local ctx = fake()
  hook.on_eval_end(ctx, { loss = 3 })
  T.eq(ctx.asked, { request_save = "best" })
  ctx.asked = {}
  hook.on_eval_end(ctx, { loss = 2.95 })
  T.eq(ctx.asked, {})
  hook.on_eval_end(ctx, { loss = 3.5 })
  T.eq(ctx.asked, { stop = "no evaluation below 3.0000 for 2 evaluations" })
end)

T.test("freeze_then_unfreeze asks at its step", function()
  local hook = require("kf.hooks.freeze_then_unfreeze").new({ pattern = "layers.*", until_step = 5 })
  local ctx = fake({ step = 0 })
  hook.on_train_begin(ctx)
  T.eq(ctx.asked, { freeze = "layers.*" })
  ctx.asked, ctx.step = {}, 4
  hook.on_step_end(ctx)
  T.eq(ctx.asked, {})
  ctx.step = 5
  hook.on_step_end(ctx)
  T.eq(ctx.asked, { unfreeze = "layers.*" })
end)

T.test("lr_finder raises the rate, plots, and names the steepest place", function()
  local finder = require("kf.hooks.lr_finder")
  T.near(finder.suggest({ { 1, 5 }, { 10, 4.5 }, { 100, 2 }, { 1000, 1.9 } }), 100)
  local hook = finder.new({ low = 0.01, high = 1, steps = 3 })
  local ctx = fake({
    lr = 1e-3,
    loss = function()
      return 2
    end,
  })
  hook.on_train_begin(ctx)
  T.near(ctx.asked.set_lr_scale, 0.01)
  hook.on_step_end(ctx)
  T.near(ctx.asked.set_lr_scale, 0.1)
  hook.on_step_end(ctx)
  T.near(ctx.asked.set_lr_scale, 1)
  hook.on_step_end(ctx)
  T.ok(ctx.asked.stop:find("steepest at learning rate", 1, true))
end)

T.test("gradient_histogram draws counts as bars", function()
  T.eq(require("kf.hooks.gradient_histogram").bars({ 0, 4, 8 }), " ▄█")
end)

--- A job that trains in a second on random ids.
local function job(more)
  local out = {
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 64, max_seq_len = 16 },
    train = { batch_size = 2, seq_len = 16, max_steps = 4, mixed_precision = "fp32" },
    optimizer = { lr = 1e-2 },
    scheduler = { name = "none" },
    checkpoint = { interval = 2 },
    metrics = { log_interval = 1 },
  }
  for section, values in pairs(more) do
    out[section] = values
  end
  return out
end

T.test("sample_printer prints what fits in a short model", function()
  local text = os.tmpname() .. ".txt"
  local file = assert(io.open(text, "w"))
  file:write(("some text to learn from; "):rep(40))
  file:close()
  local result = kf.run(job({
    run = { name = "samples", fresh = true },
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 257, max_seq_len = 16 },
    data = { dataset_path = text },
    hooks = { require("kf.hooks.sample_printer").new({ every = 2 }) },
  }))
  os.remove(text)
  T.eq(result.status, "complete")
end)

T.test("weight_ema and gradient_histogram work on a run's own tensors", function()
  local gradients = 0
  local text = os.tmpname() .. ".txt"
  local file = assert(io.open(text, "w"))
  file:write(("some text to learn from; "):rep(40))
  file:close()
  local result = kf.run(job({
    run = { name = "ema", fresh = true },
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 257, max_seq_len = 16 },
    data = { dataset_path = text },
    eval = { enabled = true, interval = 2, steps = 1, dataset_path = text },
    hooks = {
      require("kf.hooks.weight_ema").new({ decay = 0.5 }),
      require("kf.hooks.gradient_histogram").new({ every = 2, pattern = "layers.*" }),
      {
        on_backward_end = function(ctx)
          for name, grad in ctx:gradients("layers.*") do
            T.ok(name:find("^layers%."))
            gradients = gradients + grad:numel()
          end
        end,
      },
    },
  }))
  os.remove(text)
  T.eq(result.status, "complete")
  T.ok(gradients > 0)
  local averages = 0
  for _, row in ipairs(result.history) do
    averages = averages + (row.ema_loss and 1 or 0)
  end
  T.ok(averages > 0, "ema_loss stands in a row")
  local saved = kf.safetensors.load(result.checkpoint .. "/ema.safetensors")
  local live = kf.safetensors.load(result.checkpoint .. "/model.safetensors")
  local names = 0
  for name, mean in pairs(saved) do
    names = names + 1
    T.ok(not mean:equal(live[name]) or mean:numel() == 0, name)
  end
  T.ok(names > 3)
end)

T.test("norm, clipping and guard see the gradients that hooks left", function()
  local function run(name, hooks)
    local result = kf.run(job({
      run = { name = name, fresh = true },
      train = { batch_size = 2, seq_len = 16, max_steps = 1, mixed_precision = "fp32", grad_clip_norm = 0.25 },
      optimizer = { name = "sgdm", lr = 1 },
      hooks = hooks,
    }))
    return result.history[1].grad_norm, kf.safetensors.load(result.checkpoint .. "/model.safetensors")
  end
  local function write(change)
    return {
      on_backward_end = function(ctx)
        for _, gradient in ctx:gradients("*") do
          change(gradient)
        end
      end,
    }
  end
  local function far(a, b) -- the largest difference of two sets of weights
    local most = 0
    for name, weight in pairs(a) do
      most = math.max(most, (weight - b[name]):abs():max():item())
    end
    return most
  end
  local norm, weights = run("grads", {})
  T.ok(norm > 0.25, "clipping acts")
  local seen
  local large, clipped = run("grads64", {
    write(function(g)
      g:mul_(64)
    end),
    {
      on_backward_end = function(ctx)
        seen = ctx:grad_norm()
      end,
    },
  })
  T.eq(large, 64 * norm) -- powers of two change no digit
  T.eq(seen, large)
  -- Both are clipped to norm 0.25 but for the 1e-6 that the divisor has: 1e-6 / norm of an update of at most 0.25, and fp32's rounding.
  T.ok(far(clipped, weights) < 3e-6, far(clipped, weights))

  local _, spoilt = run("gradsnan", {
    write(function(g)
      g:fill_(0 / 0)
    end),
  })
  local _, skipped = run("gradsskip", {
    {
      on_backward_end = function(ctx)
        ctx:skip_update()
      end,
    },
  })
  T.eq(far(spoilt, skipped), 0)

  local kept -- a view of a lent tensor is the script's to keep: writing into it is seen as well
  local late = run("gradslate", {
    {
      on_micro_end = function(ctx)
        kept = {}
        for _, gradient in ctx:gradients("*") do
          kept[#kept + 1] = gradient:view(-1)
        end
      end,
      on_backward_end = function()
        for _, gradient in ipairs(kept) do
          gradient:mul_(64)
        end
      end,
    },
  })
  T.eq(late, 64 * norm)
end)

T.test("ctx:metrics() is the row of the step, with everything that the row will have", function()
  local paths = {}
  for i = 1, 2 do
    paths[i] = os.tmpname() .. ".txt"
    local file = assert(io.open(paths[i], "w"))
    file:write((i == 1 and "one source of text; " or "ANOTHER SOURCE, LOUD! "):rep(40))
    file:close()
  end
  kf.register.metric("own", function()
    return {
      every = 1,
      compute = function(ctx)
        return { twice = 2 * ctx:metrics()["loss/a"] }
      end,
    }
  end)
  local at = { step_end = {}, log = {}, eval_end = {} }
  local result = kf.run(job({
    run = { name = "rows", fresh = true },
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 257, max_seq_len = 16, num_experts = 2 },
    train = { batch_size = 8, seq_len = 16, max_steps = 2, mixed_precision = "fp32" },
    data = {
      datasets = { { name = "a", path = paths[1], weight = 0.5 }, { name = "b", path = paths[2], weight = 0.5 } },
    },
    eval = { enabled = true, interval = 2, steps = 1, dataset_path = paths[1] },
    metrics = { log_interval = 1, extra = { "own" } },
    hooks = {
      {
        on_step_end = function(ctx)
          ctx:log({ mine = ctx.step })
          at.step_end[ctx.step] = ctx:metrics()
        end,
        on_log = function(ctx)
          at.log[ctx.step] = ctx:metrics()
        end,
        on_eval_end = function(ctx)
          at.eval_end[ctx.step] = ctx:metrics()
        end,
      },
    },
  }))
  for _, path in ipairs(paths) do
    os.remove(path)
  end
  local rows = 0
  for _, row in ipairs(result.history) do
    if not row.eval then
      rows = rows + 1
      local names = { "loss/a", "loss/b", "data/a/tokens", "data/b/epochs", "moe/max_load", "tokens_per_sec", "mine", "own/twice" }
      for _, name in ipairs(names) do
        T.ok(row[name], name)
      end
      for event, seen in pairs(at) do
        for name, value in pairs(row) do
          if event ~= "eval_end" or row.step == 2 then
            if event ~= "step_end" or name ~= "own/twice" then -- metrics come after hooks
              T.eq(seen[row.step][name], value, event .. ": " .. name)
            end
          end
        end
      end
    end
  end
  T.eq(rows, 2)
end)

T.test("write_artifact puts whole files into the run's folder", function()
  local paths = {}
  local result = kf.run(job({
    run = { name = "artifacts", fresh = true },
    train = { batch_size = 2, seq_len = 16, max_steps = 1, mixed_precision = "fp32" },
    hooks = {
      {
        on_step_end = function(ctx)
          paths.text = ctx:write_artifact("note.txt", "a\0b")
          paths.json = ctx:write_artifact("table.json", { step = ctx.step, list = { 1, 0.5, "x" } })
          paths.one = ctx:write_artifact("one.safetensors", kf.arange(3))
          paths.two = ctx:write_artifact("two.safetensors", { b = kf.ones(2), a = kf.zeros(1) })
          for _, name in ipairs({ "a/b", "..", ".x", "", ("x"):rep(101), "ü" }) do
            T.raises(function()
              ctx:write_artifact(name, "x")
            end, "ctx:write_artifact")
          end
          for _, data in ipairs({ 5, true, print }) do
            T.raises(function()
              ctx:write_artifact("x", data)
            end, "expected a string, a table or tensors")
          end
          T.raises(function()
            ctx:write_artifact("x", { a = kf.zeros(1), b = 5 })
          end, "'b' is number 5, not a tensor")
        end,
      },
    },
  }))
  local folder = result.checkpoint:match("^(.*)/checkpoints/")
  T.eq(paths.text, folder .. "/artifacts/note.txt")
  local function read(path)
    local file = assert(io.open(path, "rb"))
    local content = file:read("*a")
    file:close()
    return content
  end
  T.eq(read(paths.text), "a\0b")
  T.ok(read(paths.json):find('"list": [', 1, true))
  T.eq(kf.safetensors.load(paths.one).tensor:tolist(), { 0, 1, 2 })
  T.eq(kf.safetensors.load(paths.two).b:tolist(), { 1, 1 })
end)

T.test("what a callback was lent ends with it", function()
  local kept
  T.raises(function()
    kf.run(job({
      run = { name = "lent", fresh = true },
      hooks = {
        {
          on_step_end = function(ctx)
            if kept then
              return kept:sum()
            end
            for _, weight in ctx:parameters("*") do
              kept = weight
            end
          end,
        },
      },
    }))
  end, "step")
end)

T.test("weights that a callback writes are those that the model computes with", function()
  local result = kf.run(job({
    run = { name = "written", fresh = true },
    train = { batch_size = 2, seq_len = 16, max_steps = 2, mixed_precision = "bf16" },
    hooks = {
      {
        on_step_end = function(ctx)
          for _, weight in ctx:parameters("*") do
            weight:zero_()
          end
        end,
      },
    },
  }))
  T.near(result.loss, math.log(64), 1e-3)
end)
