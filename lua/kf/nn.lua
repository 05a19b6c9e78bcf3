--- Modules: the native layers, and those written in Lua. `kf.nn.module({ up = nn.linear(...), forward = function(self, x) ... end })`.
local native = require("kf.native").nn

local nn = {
  --- A module from a table: its modules, parameters and buffers become children by their names; `forward` is what calling it does.
  module = native.module,
  --- A weight: `nn.parameter({ 4, 8 }, { init = "normal" })`, or with first values `nn.parameter(tensor)`.
  parameter = native.parameter,
  --- A tensor that is saved with the model and not trained.
  buffer = native.buffer,
  --- `nn.linear(in, out, { bias = false, init = "normal" | "output" | "zeros" | std | tensor })`: (.., in) -> (.., out).
  linear = native.linear,
  --- `nn.embedding(rows, dim)`: ids (..) -> (.., dim).
  embedding = native.embedding,
  --- `nn.rmsnorm(dim, eps)`, `nn.layernorm(dim, eps)`: (.., dim) -> (.., dim), statistics in fp32.
  rmsnorm = native.rmsnorm,
  layernorm = native.layernorm,
  --- `nn.norm(type, dim, eps)`: a registered norm.
  norm = native.norm,
  --- `nn.attention(a.config.model, { layer = a.layer, window = 256, ... })`: x (B, T, C), ctx -> (B, T, C), with every key of [model].
  attention = native.attention,
  --- `nn.mlp(activation, dim, hidden_dim)`: a registered mlp.
  mlp = native.mlp,
  --- `nn.moe(a.config.model, { layer = a.layer, num_experts = 8, ... })`: (.., C) -> (.., C), router and experts by the keys of [model].
  moe = native.moe,
  --- `nn.rope(head_dim, { theta, max_seq_len, fraction })`: x (B, H, T, D), first position or ctx -> rotated x.
  rope = native.rope,
  --- `nn.recompute(module, x, ctx)`: module(x, ctx), whose inner results are made again in backward instead of kept.
  recompute = native.recompute,
  --- `nn.dropout(rate)`: x, ctx -> x; the same draws whenever a step is recomputed.
  dropout = native.dropout,
  --- torch.nn.functional's names, for functions without weights: `nn.functional.cross_entropy(logits, labels, { reduction = "sum" })`.
  functional = require("kf.functional"),
}

native.metatable.__call = function(self, ...)
  if native.is_observed() then -- somebody has forward hooks
    return native.observe(self, (...), self.forward(self, ...))
  end
  return self.forward(self, ...)
end

native.metatable.__tostring = function(self)
  local names = {}
  for name, value in pairs(self) do
    if type(name) == "string" and type(value) ~= "function" then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return "nn.module: " .. table.concat(names, ", ")
end

--- Modules in a plain list: `#`, `ipairs`; as a field of a module its children are called 0, 1, ...
---@param modules table
function nn.list(modules)
  if type(modules) ~= "table" or #modules == 0 then
    error(("nn.list: expected a list of modules, got %s"):format(type(modules) == "table" and "an empty table" or type(modules)), 2)
  end
  for i, module in ipairs(modules) do
    if not native.is_module(module) then
      error(("nn.list: item %d is a %s, not a module"):format(i, type(module)), 2)
    end
  end
  return modules
end

--- One module after the other; functions may stand between them: `nn.sequential(nn.linear(4, 8), kf.op.relu, nn.linear(8, 4))`.
function nn.sequential(...)
  local steps = { ... }
  if #steps == 1 and type(steps[1]) == "table" and not native.is_module(steps[1]) then
    steps = steps[1]
  end
  local fields = {}
  for i, step in ipairs(steps) do
    if native.is_module(step) then
      fields[tostring(i - 1)] = step
    elseif type(step) ~= "function" then
      error(("nn.sequential: item %d is a %s, neither a module nor a function"):format(i, type(step)), 2)
    end
  end
  if #steps == 0 then
    error("nn.sequential: expected modules, got none", 2)
  end
  fields.forward = function(_, x)
    for _, step in ipairs(steps) do
      x = step(x)
    end
    return x
  end
  return nn.module(fields)
end

--- Layers that scripts of PyTorch call otherwise: nn.Linear, nn.LayerNorm, nn.ModuleList; activations are functions.
local function unknown(_, name)
  local plain = tostring(name):lower():gsub("_", "")
  local called = { modulelist = "list" }
  if rawget(nn, called[plain] or plain) then
    error(("kf.nn has no '%s'; did you mean nn.%s?"):format(tostring(name), called[plain] or plain), 2)
  end
  local ok = pcall(function()
    return nn.functional[plain]
  end)
  if ok then
    error(("kf.nn has no '%s'; it is a function, kf.%s(x), which nn.sequential takes as well"):format(tostring(name), plain), 2)
  end
  local names = {}
  for known in pairs(nn) do
    names[#names + 1] = known
  end
  table.sort(names)
  error(("kf.nn has no '%s'; have: %s"):format(tostring(name), table.concat(names, ", ")), 2)
end

return setmetatable(nn, { __index = unknown })
