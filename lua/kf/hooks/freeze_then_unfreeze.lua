--- Trains only a part of the weights at first: those that match `pattern` stand still until step `until_step`.
--- `hooks = { require("kf.hooks.freeze_then_unfreeze").new({ pattern = "layers.*", until_step = 200 }) }`
local options = require("kf.options")
local M = {}

M.doc = "Freeze weights by name for the first steps."
M.fields = {
  { "pattern", "string", default = "layers.*", doc = "Name pattern of the weights that stand still." },
  { "until_step", "int", default = 100, min = 1, doc = "Completed updates after which they train." },
}

---@param opts? { pattern?: string, until_step?: integer }
---@return kf.Hook
function M.new(opts)
  local o = options.read("freeze_then_unfreeze", M.fields, opts)
  return {
    name = "freeze_then_unfreeze",
    on_train_begin = function(ctx)
      if ctx.step < o.until_step then -- a resumed run has it in its checkpoint; asking again changes nothing
        ctx:freeze(o.pattern)
      end
    end,
    on_step_end = function(ctx)
      if ctx.step == o.until_step then
        ctx:unfreeze(o.pattern)
      end
    end,
  }
end

return M
