--- Looking into a model while it trains: sizes of activations and gradients by layer, through hooks on modules and weights.
--- Run it: kf-host examples/scripts/activations.lua
local sums = {} -- since the last row: name -> sum of root mean squares, count

local function add(name, tensor)
  local entry = sums[name] or { 0, 0 }
  entry[1] = entry[1] + tensor:detach():float():square():mean():sqrt():item()
  entry[2] = entry[2] + 1
  sums[name] = entry
end

local watch = {
  name = "watch",
  on_train_begin = function(ctx)
    ctx:register_forward_hook("layers.*.mlp", function(name, _, output)
      add("rms/" .. name, output)
      if output.requires_grad then -- the gradient of an activation: a hook on the tensor itself
        output:register_hook(function(gradient)
          add("grad_rms/" .. name, gradient)
        end)
      end
    end)
    ctx:register_gradient_hook("layers.*.q_proj.weight", function(name, gradient)
      add("grad_rms/" .. name, gradient)
    end)
  end,
  on_log = function(ctx)
    local row = {}
    for name, entry in pairs(sums) do
      row[name] = entry[1] / entry[2]
    end
    sums = {}
    ctx:log(row)
  end,
}

---@type kf.Config
return { extends = "base.toml", hooks = { watch } }
