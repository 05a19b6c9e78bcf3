--- An exponential average of the weights, evaluated beside them and kept in every checkpoint as ema.safetensors.
--- `hooks = { require("kf.hooks.weight_ema").new({ decay = 0.999 }) }`
local options = require("kf.options")
local M = {}

M.doc = "Average the weights; log ema_loss at every evaluation."
M.fields = {
  { "decay", "float", default = 0.999, min = 0, max = 1, doc = "Share of the old average that an update keeps." },
}

---@param opts? { decay?: number }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("weight_ema", M.fields, opts)
  local average -- name -> tensor

  --- The averages and the live weights, as lists in the same order.
  local function pairs_of(ctx)
    local first, means, weights = average == nil, {}, {}
    average = average or {}
    for name, weight in ctx:parameters("*") do
      average[name] = first and weight:clone() or average[name]
      means[#means + 1], weights[#weights + 1] = average[name], weight
    end
    return means, weights
  end

  return {
    name = "weight_ema",
    on_step_end = function(ctx)
      local means, weights = pairs_of(ctx)
      kf.op._foreach_lerp_(means, weights, 1 - o.decay)
    end,
    on_eval_end = function(ctx)
      local means, weights = pairs_of(ctx)
      local live = {}
      for i, weight in ipairs(weights) do
        live[i] = weight:clone()
      end
      kf.op._foreach_copy_(weights, means)
      local ema = ctx:evaluate()
      kf.op._foreach_copy_(weights, live)
      ctx:log({ ema_loss = ema.loss })
    end,
    on_checkpoint_save = function(_, path)
      if average then
        kf.safetensors.save(path .. "/ema.safetensors", average)
      end
    end,
    on_checkpoint_load = function(_, path)
      average = kf.safetensors.load(path .. "/ema.safetensors")
    end,
  }
end

return M
