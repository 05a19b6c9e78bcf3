--- A grid whose points differ in shape: each optimizer has settings of its own, and the heads follow the width.
local kf = require("kf")

return kf.sweep({
  base = { extends = "../toy/job.toml", train = { max_steps = 10 }, eval = { interval = 10, steps = 1 } },
  space = {
    optimizer = kf.choice({
      { name = "adamw", lr = kf.choice({ 1e-3, 3e-3 }) },
      { name = "lion", lr = 3e-4 },
    }),
    ["model.dim"] = kf.choice({ 32, 64 }),
    ["model.n_heads"] = function(c) -- of the values so far
      return c.model.dim / 16
    end,
  },
  method = "grid",
  parallel = 2,
})
