--- Twelve random points, two at a time; every fifth step the training loss is reported, and the worse half ends there.
local kf = require("kf")

local report = {
  name = "report",
  every = 5,
  on_step_end = function(ctx)
    ctx:report(ctx:loss()) -- what pruning looks at; without it, evaluations
  end,
}

return kf.sweep({
  base = { extends = "../toy/job.toml", train = { max_steps = 20 }, eval = { interval = 20, steps = 1 }, hooks = { report } },
  space = {
    ["optimizer.lr"] = kf.loguniform(1e-4, 1e-1),
    ["optimizer.weight_decay"] = kf.uniform(0, 0.2),
    ["scheduler.warmup_steps"] = kf.randint(1, 10),
  },
  method = "random",
  prune = { min_resource = 5, reduction_factor = 2 },
  trials = 12,
  parallel = 2,
  seed = 1,
  objective = "eval.loss",
})
