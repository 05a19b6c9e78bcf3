--- Warm-up, stable, decay, with any number of decays branching off one stable trunk (Hägele et al. 2024): each branch starts from a
--- checkpoint of the trunk and costs its decay only.
--- `kf.register.scheduler("wsd_branches", wsd.new, wsd.about)`; see `M.branches`.
local M = {}

M.about = {
  doc = "Warm-up, the peak, and a decay over the run's last decay_steps; 0 for a trunk.",
  fields = {
    { "decay_steps", "int", default = 0, min = 0, doc = "Length of the decay at the end of the run." },
    { "floor", "float", default = 0.0, min = 0, max = 1, doc = "Factor at the end of the decay." },
  },
}

---@param a { config: kf.Config, options: { decay_steps: integer, floor: number }, max_steps: integer }
---@return fun(step: integer): number
function M.new(a)
  local warmup, length, floor = a.config.scheduler.warmup_steps, a.options.decay_steps, a.options.floor
  local decay_at = a.max_steps - length
  return function(step)
    if step < warmup then
      return step / warmup
    elseif step < decay_at or length == 0 then
      return 1
    end
    return 1 - (1 - floor) * math.sqrt(math.min(1, (step - decay_at) / length))
  end
end

--- Jobs that decay from checkpoints of a trunk: `for _, job in ipairs(wsd.branches(base, "runs/trunk/checkpoints", { 100, 200 }, 20))`.
---@param base string  the job that the trunk ran, for `extends`
---@param folder string  the trunk's checkpoints
---@param steps integer[]  where branches start: steps that the trunk saved, before its end
---@param decay_steps integer
---@return table[]
function M.branches(base, folder, steps, decay_steps)
  local jobs = {}
  for i, step in ipairs(steps) do
    jobs[i] = {
      extends = base,
      run = { name = ("branch-%d"):format(step) },
      train = { max_steps = step + decay_steps },
      scheduler = { name = "wsd_branches", wsd_branches = { decay_steps = decay_steps } },
      checkpoint = { load_path = ("%s/step_%d"):format(folder, step) },
    }
  end
  return jobs
end

return M
