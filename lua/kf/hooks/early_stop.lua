--- Ends the run when evaluations stop getting better. `hooks = { require("kf.hooks.early_stop").new({ patience = 3 }) }`
local options = require("kf.options")
local M = {}

M.doc = "Stop when the evaluation loss has not improved for some evaluations."
M.fields = {
  { "patience", "int", default = 3, min = 1, doc = "Evaluations without an improvement." },
  { "min_delta", "float", default = 0.0, min = 0, doc = "How much lower a loss must be to count as an improvement." },
  { "save_best", "bool", default = true, doc = "Keep the best weights as the checkpoint 'best'." },
}

---@param opts? { patience?: integer, min_delta?: number, save_best?: boolean }
---@return kf.Hook
function M.new(opts)
  local o = options.read("early_stop", M.fields, opts)
  local best, waited = math.huge, 0
  return {
    name = "early_stop",
    on_eval_end = function(ctx, eval)
      if not eval.loss then
        return -- no label counted
      end
      if eval.loss < best - o.min_delta then
        best, waited = eval.loss, 0
        if o.save_best then
          ctx:request_save("best")
        end
        return
      end
      waited = waited + 1
      if waited >= o.patience then
        ctx:stop(("no evaluation below %.4f for %d evaluations"):format(best, waited))
      end
    end,
    state = function()
      return { best = best, waited = waited }
    end,
    load = function(state)
      best, waited = state.best, state.waited
    end,
  }
end

return M
