--- One cycle (Smith and Topin 2019): up from a low rate over the first part of the run, down far below it over the rest, by half cosines.
--- `kf.register.scheduler("one_cycle", one_cycle.new, one_cycle.about)`
local M = {}

M.about = {
  doc = "Half a cosine up to the peak, another down to almost nothing.",
  fields = {
    { "peak_at", "float", default = 0.3, min = 0, max = 1, doc = "Share of the run after which the peak is reached." },
    { "start", "float", default = 0.04, min = 0, max = 1, doc = "First factor." },
    { "finish", "float", default = 1e-4, min = 0, max = 1, doc = "Factor at the end." },
  },
}

--- From `from` to `to` along half a cosine, t from 0 to 1.
local function anneal(from, to, t)
  return to + (from - to) * (1 + math.cos(math.pi * t)) / 2
end

---@param a { options: { peak_at: number, start: number, finish: number }, max_steps: integer }
---@return fun(step: integer): number
function M.new(a)
  local o = a.options
  local up = o.peak_at * a.max_steps
  return function(step)
    if step < up then
      return anneal(o.start, 1, step / up)
    end
    return anneal(1, o.finish, math.min(1, (step - up) / math.max(1, a.max_steps - up)))
  end
end

return M
