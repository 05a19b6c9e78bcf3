--- A learning-rate schedule in one function, with a field of its own that is checked like any other.
--- Run it: kf-host examples/recipes/inverse_sqrt.lua --scheduler.inverse_sqrt.floor=0.1
local kf = require("kf")

kf.register.scheduler("inverse_sqrt", function(a)
  local warmup, floor = a.config.scheduler.warmup_steps, a.options.floor
  return function(step) -- completed updates: 0 for the first
    if step < warmup then
      return step / warmup
    end
    return math.max(math.sqrt(math.max(warmup, 1) / math.max(step, 1)), floor)
  end
end, {
  doc = "Warm up linearly, then decay with the inverse square root of the step.",
  fields = { { "floor", "float", default = 0, min = 0, max = 1, doc = "Smallest factor." } },
})

---@type kf.Config
return {
  extends = "../toy/job.toml",
  scheduler = { name = "inverse_sqrt", inverse_sqrt = { floor = 0.2 } },
}
