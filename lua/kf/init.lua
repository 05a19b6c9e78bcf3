--- The module `kf`: what scripts see of the host. `local kf = require("kf")`; nothing is global.
local native = require("kf.native")

local kf = {
  --- The host's version, "0.1.0".
  version = native.version,
  --- The strings after `--` on the command line.
  args = native.args,
  --- This process among all: `rank` counts from 0 to `world - 1`.
  dist = native.dist,
  --- `kf.register.<kind>(name, factory, { fields = ..., doc = ... })`.
  register = native.register,
  --- Trains a job (a table like a recipe's) and returns { status, steps, tokens, loss, eval, history, checkpoint, seconds }.
  run = native.run,

  --- Every ATen operator: `kf.op.softmax(x, -1)`; `kf.op.help("softmax")`, `kf.op.missing()`, `kf.op.list()`.
  op = native.op,
  --- A tensor of numbers in (nested) lists: float32 unless `{ dtype = ... }` says otherwise; booleans make a bool tensor.
  tensor = native.tensor,
  --- Whether a value is a tensor.
  is_tensor = native.is_tensor,
  --- A whole dim in an index: `x[{ kf.all, 0 }]`.
  all = native.all,
  --- A float where a Lua number would be taken for an integer: `kf.float(2)`.
  float = native.float,
  --- The run's random numbers; `kf.generator(seed)` makes others.
  rng = native.rng,
  generator = native.generator,
  --- Tensors in files: `kf.safetensors.save(path, { name = tensor })`, `kf.safetensors.load(path)`.
  safetensors = native.safetensors,
  --- Functions with a backward of their own: `kf.autograd.fn({ forward = ..., backward = ... })`.
  autograd = native.autograd, -- and kf.autograd.grad, as PyTorch calls kf.grad
  grad = native.grad,
  no_grad = native.no_grad,
  enable_grad = native.enable_grad,
  is_grad_enabled = native.is_grad_enabled,
  --- Modules, native and written in Lua.
  nn = require("kf.nn"),
  --- The registered losses as functions: `kf.losses.cross_entropy(logits, labels)` -> sum, number.
  losses = require("kf.losses"),
  --- The model of a checkpoint as a function of tokens, frozen, in evaluation mode.
  load_model = native.load_model,
  --- A sweep, for a script to return: many runs of one job with different settings.
  sweep = native.sweep,
}

kf.autograd.grad = kf.grad

--- As torch.manual_seed.
function kf.manual_seed(seed)
  kf.rng:seed(seed)
end

-- kf.zeros, kf.randn, ...: what makes tensors; every other operator is found when it is asked for.
for _, name in ipairs(native.factory_names()) do
  kf[name] = native.find_factory(name)
end

--- A function that formats like string.format and writes a line to the log; without further arguments the text stands as it is.
local function logger(level)
  return function(pattern, ...)
    if type(pattern) ~= "string" then
      error(("kf.log.%s: expected a string, got %s"):format(level, type(pattern)), 2)
    end
    if select("#", ...) > 0 then
      local ok, text = pcall(string.format, pattern, ...)
      if not ok then
        error(("kf.log.%s: %s"):format(level, text), 2)
      end
      pattern = text
    end
    native.log(level, pattern)
  end
end

--- Lines in the run's log: `kf.log.info("loss %.3f at step %d", loss, step)`.
kf.log = { info = logger("info"), warn = logger("warn"), error = logger("error") }

kf.print_table = require("kf.table").print

-- kf.uniform, kf.loguniform, kf.quniform, kf.randint, kf.lograndint, kf.choice.
local sweep = require("kf.sweep")
local random_integers = kf.randint
for name, constructor in pairs(sweep) do
  kf[name] = constructor
end

--- With a size, PyTorch's: `kf.randint(0, 10, { 2, 3 })` is a tensor; without one, whole numbers for a sweep: `kf.randint(1, 1000)`.
function kf.randint(low, high, third, ...)
  if type(high) == "table" or type(third) == "table" then
    return random_integers(low, high, third, ...)
  end
  return sweep.randint(low, high, third) -- a tail call: errors count levels
end

return setmetatable(kf, { __index = native.missing, __newindex = native.refuse })
