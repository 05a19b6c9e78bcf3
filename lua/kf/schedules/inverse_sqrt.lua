--- Warm up linearly, then decay with the inverse square root of the step (Vaswani et al. 2017, section 5.3).
--- `kf.register.scheduler("inverse_sqrt", inverse_sqrt.new, inverse_sqrt.about)`
local M = {}

M.about = {
  doc = "Linear warm-up, then sqrt(warmup / step).",
  fields = { { "floor", "float", default = 0.0, min = 0, max = 1, doc = "Smallest factor after the warm-up." } },
}

---@param a { config: kf.Config, options: { floor: number } }  scheduler.warmup_steps is its warm-up
---@return fun(step: integer): number
function M.new(a)
  local warmup, floor = math.max(1, a.config.scheduler.warmup_steps), a.options.floor
  return function(step)
    if step < warmup then
      return step / warmup
    end
    return math.max(floor, math.sqrt(warmup / step))
  end
end

return M
