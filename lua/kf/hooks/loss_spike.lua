--- Keeps a sudden jump of the loss from doing harm: the update is skipped, or the run goes back to its last checkpoint and leaves the data
--- since then out. `hooks = { require("kf.hooks.loss_spike").new({ factor = 2, action = "rollback" }) }`
local options = require("kf.options")
local M = {}

M.doc = "Skip updates whose loss jumps, or go back to the last checkpoint."
M.fields = {
  { "factor", "float", default = 2.0, min = 1, doc = "A loss above so many times its running mean is a spike." },
  { "action", "string", default = "skip", choices = { "skip", "rollback" }, doc = "What happens then." },
  { "warmup", "int", default = 20, min = 1, doc = "Updates before the mean is trusted." },
  { "beta", "float", default = 0.98, min = 0, max = 1, doc = "Share of the old mean that an update keeps." },
}

---@param opts? { factor?: number, action?: "skip"|"rollback", warmup?: integer, beta?: number }
---@return kf.Hook
function M.new(opts)
  local o = options.read("loss_spike", M.fields, opts)
  local mean, seen = 0, 0
  return {
    name = "loss_spike",
    on_backward_end = function(ctx)
      local loss = ctx:loss()
      if loss ~= loss then
        return -- not a number: the host skips such updates itself
      end
      if seen >= o.warmup and loss > o.factor * mean then
        local why = ("loss %.3f is %.1f times its mean"):format(loss, loss / mean)
        ctx:skip_update(why)
        if o.action == "rollback" then
          ctx:request_rollback(why)
        end
        return
      end
      seen = seen + 1
      mean = mean + math.max(1 - o.beta, 1 / seen) * (loss - mean)
    end,
    state = function()
      return { mean = mean, seen = seen }
    end,
    load = function(state)
      mean, seen = state.mean, state.seen
    end,
  }
end

return M
