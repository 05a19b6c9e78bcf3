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
