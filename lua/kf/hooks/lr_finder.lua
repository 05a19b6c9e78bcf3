--- Learning-rate range test (Smith 2017): raises the rate step by step, plots the loss against it, and stops. Use it with
--- `scheduler = { name = "none" }`: the rate then goes from `low` to `high` times optimizer.lr.
local options = require("kf.options")
local plot = require("kf.plot")
local M = {}

M.doc = "Raise the learning rate over some steps and plot the loss against it."
M.fields = {
  { "low", "float", default = 1e-3, above = 0, doc = "First factor of optimizer.lr." },
  { "high", "float", default = 1e2, above = 0, doc = "Last factor of optimizer.lr." },
  { "steps", "int", default = 100, min = 2, doc = "Updates from low to high." },
  { "beta", "float", default = 0.9, min = 0, below = 1, doc = "Smoothing of the loss." },
}

--- The rate at which the loss falls fastest, by the steepest descent over log(rate).
function M.suggest(points)
  local best, steepest = nil, 0
  for i = 2, #points do
    local slope = (points[i][2] - points[i - 1][2]) / math.log(points[i][1] / points[i - 1][1])
    if slope < steepest then
      best, steepest = points[i][1], slope
    end
  end
  return best
end

---@param opts? { low?: number, high?: number, steps?: integer, beta?: number }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("lr_finder", M.fields, opts)
  local points, mean, best = {}, 0, math.huge
  return {
    name = "lr_finder",
    on_train_begin = function(ctx)
      ctx:set_lr_scale(o.low)
    end,
    on_step_end = function(ctx)
      local loss = ctx:loss()
      if not loss then
        return -- a step without a label that counts
      end
      mean = o.beta * mean + (1 - o.beta) * loss
      local smooth = mean / (1 - o.beta ^ (#points + 1))
      points[#points + 1] = { ctx.lr, smooth }
      best = math.min(best, smooth)
      if #points >= o.steps or not (smooth < 4 * best) then -- luacheck: ignore 581 (NaN)
        kf.log.info("loss over learning rate\n%s", table.concat(plot.lines(points, { log_x = true }), "\n"))
        ctx:stop(("steepest at learning rate %.3g"):format(M.suggest(points) or 0 / 0))
      end
      ctx:set_lr_scale(o.low * (o.high / o.low) ^ (#points / (o.steps - 1)))
    end,
  }
end

return M
