--- An exponential average of the weights, evaluated beside them and kept in every checkpoint as ema.safetensors, which
--- `--weights average`, `checkpoint.init_weights` and `kf.load_model` read. It is what `averaging.type = "ema"` keeps: it begins as the
--- weights before the first update, and an update moves it by 1 - decay of the way to the weights.
--- `hooks = { require("kf.hooks.weight_ema").new({ decay = 0.999 }) }`
local options = require("kf.options")
local M = {}

M.doc = "Average the weights; log ema_loss at every evaluation."
M.fields = {
  { "decay", "float", default = 0.999, min = 0, below = 1, doc = "Share of the old average that an update keeps." },
}

---@param opts? { decay?: number }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("weight_ema", M.fields, opts)
  local average -- name -> tensor
  local saved -- the same, as the save that is on has it: it may be complete some steps later
  local skipped = 0 -- steps without an update that have been seen

  --- The averages and the live weights, as lists in the same order.
  local function pairs_of(ctx)
    local means, weights = {}, {}
    for name, weight in ctx:parameters("*") do
      means[#means + 1], weights[#weights + 1] = average[name], weight
    end
    return means, weights
  end

  return {
    name = "weight_ema",
    on_train_begin = function(ctx)
      average = {}
      for name, weight in ctx:parameters("*") do
        average[name] = weight:clone()
      end
    end,
    state = function()
      saved = {}
      for name, mean in pairs(average or {}) do
        saved[name] = mean:clone()
      end
      return { skipped = skipped }
    end,
    load = function(state)
      skipped = state.skipped
    end,
    on_step_end = function(ctx)
      local before = skipped
      skipped = ctx:metrics().skipped
      if skipped > before then
        return -- an average counts updates
      end
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
      kf.safetensors.save(path .. "/ema.safetensors", saved)
    end,
    on_checkpoint_load = function(_, path)
      average = kf.safetensors.load(path .. "/ema.safetensors")
    end,
  }
end

return M
