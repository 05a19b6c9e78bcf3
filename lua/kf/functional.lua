--- kf.nn.functional: torch.nn.functional's names and order of arguments; most are ATen operators, which answer for themselves.
local op = require("kf.native").op

local F = {}

-- The operator takes the table first.
function F.embedding(ids, weight)
  return op.embedding(weight, ids)
end

-- Names that differ; options in a last table: F.cross_entropy(logits, labels, { reduction = "sum", label_smoothing = 0.1 }).
local renamed = {
  cross_entropy = "cross_entropy_loss",
  nll_loss = "nll_loss_nd",
  logsigmoid = "log_sigmoid",
}
for name, operator in pairs(renamed) do
  F[name] = op[operator]
end

--- x / max(its norm of order p over dim, eps).
function F.normalize(x, p, dim, eps)
  return x / x:norm(p or 2, dim or 1, true):clamp_min(eps or 1e-12)
end

--- By default as in training, as in PyTorch.
function F.dropout(x, p, training)
  return op.dropout(x, p or 0.5, training ~= false)
end

return setmetatable(F, {
  __index = function(_, name)
    return op[name]
  end,
})
