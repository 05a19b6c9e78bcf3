--- A growing batch as phases: `phases = require("kf.schedules.batch_ramp").phases({ from = 4, to = 32, steps = 600, stages = 4 })`.
local options = require("kf.options")
local M = {}

M.fields = {
  { "from", "int", default = 1, min = 1, doc = "Sequences of a micro-batch at first." },
  { "to", "int", default = 8, min = 1, doc = "Sequences after the ramp; the rest of the run has so many." },
  { "steps", "int", default = 1000, min = 1, doc = "Updates over which the batch grows." },
  { "stages", "int", default = 4, min = 1, doc = "Sizes from first to last, equally long, each a constant factor above the one before." },
  { "scale_lr", "bool", default = false, doc = "Multiply the rate by the square root of the batch's share of its final size." },
}

---@param opts? { from?: integer, to?: integer, steps?: integer, stages?: integer, scale_lr?: boolean }
---@return table[]  entries of `phases`
function M.phases(opts)
  local o = options.read("batch_ramp", M.fields, opts)
  local phases = {}
  for i = 1, o.stages do
    local share = o.stages > 1 and (i - 1) / (o.stages - 1) or 1
    local size = math.floor(o.from * (o.to / o.from) ^ share + 0.5)
    phases[i] = {
      name = ("batch %d"):format(size),
      until_step = i < o.stages and math.floor(o.steps * i / o.stages + 0.5) or nil,
      batch_size = size,
      lr_scale = o.scale_lr and math.sqrt(size / o.to) or 1,
    }
  end
  return phases
end

return M
