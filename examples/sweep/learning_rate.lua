--- Eight trials of learning rate, width and optimizer, two at a time; bad ones are cut at their first evaluations.
local kf = require("kf")

return kf.sweep({
  base = { extends = "../toy/job.toml", train = { max_steps = 40 }, eval = { interval = 10, steps = 2 } },
  space = {
    ["optimizer.lr"] = kf.loguniform(1e-4, 3e-2),
    ["optimizer.name"] = kf.choice({ "adamw", "lion" }),
    ["model.dim"] = kf.choice({ 32, 64 }),
  },
  adjust = function(c) -- may change the values drawn, or reject them with false
    if c.optimizer.name == "lion" then
      c.optimizer.lr = c.optimizer.lr / 5
    end
  end,
  method = "asha",
  prune = { min_resource = 10, reduction_factor = 2 },
  trials = 8,
  parallel = 2,
  seed = 7,
  objective = "eval.loss",
})
