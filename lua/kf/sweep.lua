--- What a parameter of a sweep may be: `space = { ["optimizer.lr"] = kf.loguniform(1e-4, 1e-2) }` in kf.sweep.
local M = {}

local Distribution = { __kf_distribution = true }

local function shown(value)
  if type(value) == "string" then
    return ("%q"):format(value)
  end
  return tostring(value)
end

function Distribution:__tostring()
  if self.kind == "choice" then
    local names = {}
    for i, option in ipairs(self.options) do
      names[i] = shown(option)
    end
    return ("kf.choice({ %s })"):format(table.concat(names, ", "))
  end
  local step = self.step and (", " .. self.step) or ""
  return ("kf.%s(%s, %s%s)"):format(self.kind, self.low, self.high, step)
end

-- Levels of error() count up to the line that called the constructor. The constructors make no tail calls, which would leave no level.

local function check_number(kind, name, value)
  if type(value) ~= "number" or value ~= value or value == math.huge or value == -math.huge then
    error(("kf.%s: %s must be a number, got %s"):format(kind, name, shown(value)), 4)
  end
end

local function check_integer(kind, name, value)
  if type(value) ~= "number" or value ~= math.floor(value) or math.abs(value) > 2 ^ 53 then
    error(("kf.%s: %s must be a whole number, got %s"):format(kind, name, shown(value)), 4)
  end
end

local function numeric(kind, low, high, step, check)
  check(kind, "low", low)
  check(kind, "high", high)
  if low > high then
    error(("kf.%s: low (%s) is above high (%s)"):format(kind, low, high), 3)
  end
  if kind:find("^log") and low <= 0 then
    error(("kf.%s: low must be above 0 for a logarithm, got %s"):format(kind, low), 3)
  end
  if step ~= nil then
    check(kind, "step", step)
    if step <= 0 then
      error(("kf.%s: step must be above 0, got %s"):format(kind, step), 3)
    end
  end
  return setmetatable({ kind = kind, low = low, high = high, step = step }, Distribution)
end

--- Every number from `low` to `high`, all alike.
---@param low number
---@param high number
function M.uniform(low, high)
  local made = numeric("uniform", low, high, nil, check_number)
  return made
end

--- Every number from `low` to `high`, their logarithms all alike: for learning rates and other scales.
---@param low number  above 0
---@param high number
function M.loguniform(low, high)
  local made = numeric("loguniform", low, high, nil, check_number)
  return made
end

--- low, low + step, low + 2 * step, ... up to `high`.
---@param low number
---@param high number
---@param step number
function M.quniform(low, high, step)
  if step == nil then
    error("kf.quniform: step is missing: kf.quniform(low, high, step)", 2)
  end
  local made = numeric("quniform", low, high, step, check_number)
  return made
end

--- Whole numbers from `low` to `high`, both included, `step` apart.
---@param low integer
---@param high integer
---@param step? integer  1 without
function M.randint(low, high, step)
  local made = numeric("randint", low, high, step, check_integer)
  return made
end

--- Whole numbers from `low` to `high`, their logarithms all alike.
---@param low integer  above 0
---@param high integer
function M.lograndint(low, high)
  local made = numeric("lograndint", low, high, nil, check_integer)
  return made
end

--- One of the values of a list. A table of settings among them is a group: what it holds belongs to that choice alone.
---@param options any[]
function M.choice(options)
  if type(options) ~= "table" or getmetatable(options) == Distribution then
    error(("kf.choice: expected a list of values, kf.choice({ 32, 64 }), got %s"):format(shown(options)), 2)
  end
  local count = 0
  for key in pairs(options) do
    count = count + 1
    if type(key) ~= "number" then
      error(("kf.choice: expected a list of values, it has the key %s"):format(shown(key)), 2)
    end
  end
  if count == 0 then
    error("kf.choice: the list is empty", 2)
  elseif count ~= #options then
    error("kf.choice: the list has gaps (a nil among the values?)", 2)
  end
  return setmetatable({ kind = "choice", options = options }, Distribution)
end

return M
