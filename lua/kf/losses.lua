--- The registered losses as functions: `local sum, n = kf.losses.cross_entropy(logits, labels)`, logits (N, V), labels (N).
local native = require("kf.native")

return setmetatable({}, {
  __index = function(losses, name)
    local known = false
    for _, other in ipairs(native.loss_names()) do
      known = known or other == name
    end
    if not known then
      error(("kf.losses has no '%s'; there are %s"):format(tostring(name), table.concat(native.loss_names(), ", ")), 2)
    end
    local function loss(logits, labels)
      return native.loss(name, logits, labels)
    end
    rawset(losses, name, loss)
    return loss
  end,
})
