--- The spec runner: `kf-host test FILE_spec.lua`. `T.test(name, body)` runs at once; a failure does not stop the others.
local kf = require("kf")
local pretty = require("kf.pretty")

local M = {}
local report = { passed = 0, failed = 0, skipped = 0, failures = {} }
local skipping = {} -- what T.skip raises

--- Where the spec's code stands that called the check: the first frame that is not this file.
local function fail(text, ...)
  local message = select("#", ...) > 0 and text:format(...) or text
  for level = 2, 20 do
    local info = debug.getinfo(level, "Sl")
    if not info then
      break
    end
    if info.short_src ~= "kf.test" and info.currentline > 0 then
      error(("%s:%d: %s"):format(info.short_src, info.currentline, message), 0)
    end
  end
  error(message, 0)
end

local function handler(problem)
  if problem == skipping then
    return problem
  end
  local text = type(problem) == "string" and problem or pretty.text(problem)
  local frames = {}
  for level = 2, 12 do
    local info = debug.getinfo(level, "Sl")
    if not info then
      break
    end
    local place = ("%s:%d"):format(info.short_src, info.currentline)
    if info.currentline > 0 and info.short_src ~= "kf.test" and not text:find(place, 1, true) then
      frames[#frames + 1] = "from " .. place
    end
  end
  return table.concat({ text, unpack(frames) }, "\n")
end

--- Runs `body` as a test called `name`.
---@param name string
---@param body fun()
function M.test(name, body)
  if type(name) ~= "string" then
    error(("test: expected a name (a string), got %s"):format(type(name)), 2)
  elseif type(body) ~= "function" then
    error(("test: expected a function as second argument, got %s"):format(type(body)), 2)
  end
  local filter = M.filter
  if filter and not name:find(filter, 1, true) then
    return
  end
  local ok, problem = xpcall(body, handler)
  if ok then
    report.passed = report.passed + 1
    print("  ok    " .. name)
  elseif problem == skipping then
    report.skipped = report.skipped + 1
    print("  skip  " .. name .. (skipping.reason and ": " .. skipping.reason or ""))
  else
    report.failed = report.failed + 1
    report.failures[#report.failures + 1] = name
    print("  FAIL  " .. name)
    print("        " .. problem:gsub("\n", "\n        "))
  end
end

--- Ends the running test without a verdict.
function M.skip(reason)
  skipping.reason = reason
  error(skipping, 0)
end

--- What was counted so far: { passed, failed, skipped, failures }.
function M.report()
  return report
end

local function is_number(value)
  return type(value) == "number"
end

--- The path of the first difference, or nil.
local function difference(a, b, same, path)
  if kf.is_tensor(a) and kf.is_tensor(b) then
    if a.dtype ~= b.dtype then
      return ("%s: dtypes %s and %s"):format(path, a.dtype, b.dtype)
    end
    return difference(a:tolist(), b:tolist(), same, path)
  elseif type(a) == "table" and type(b) == "table" then
    for key, value in pairs(a) do
      local found = difference(value, b[key], same, path .. "." .. tostring(key))
      if found then
        return found
      end
    end
    for key, value in pairs(b) do
      if a[key] == nil then
        return ("%s.%s: nothing and %s"):format(path, tostring(key), pretty.text(value))
      end
    end
    return nil
  elseif same(a, b) then
    return nil
  end
  return ("%s: %s and %s"):format(path, pretty.text(a), pretty.text(b))
end

local function equal(a, b)
  return a == b or (a ~= a and b ~= b) -- nan equals nan here: it is what was asked for
end

--- Equal in depth: numbers exactly, tables and tensors item by item.
function M.eq(got, wanted)
  local found = difference(got, wanted, equal, "value")
  if found then
    fail("not equal, %s\n  got    %s\n  wanted %s", found, pretty.text(got), pretty.text(wanted))
  end
end

--- Not equal.
function M.ne(got, other)
  if not difference(got, other, equal, "value") then
    fail("both are %s", pretty.text(got))
  end
end

--- Equal within `tolerance` (default 1e-6) of the larger of 1 and the wanted value.
function M.near(got, wanted, tolerance)
  tolerance = tolerance or 1e-6
  local found = difference(got, wanted, function(a, b)
    if is_number(a) and is_number(b) then
      return a == b or math.abs(a - b) <= tolerance * math.max(1, math.abs(b))
    end
    return equal(a, b)
  end, "value")
  if found then
    fail("not within %g, %s", tolerance, found)
  end
end

--- Neither nil nor false.
function M.ok(value, what)
  if not value then
    fail("%s is %s", what or "the value", tostring(value))
  end
  return value
end

--- `f` must fail with a message that contains `text`; returns the message.
function M.raises(f, text)
  if type(f) ~= "function" then
    error(("raises: expected a function, got %s"):format(type(f)), 2)
  end
  local ok, problem = pcall(f)
  if ok then
    fail("no error was raised%s", text and (", wanted one with %q"):format(text) or "")
  end
  local message = type(problem) == "string" and problem or pretty.text(problem)
  if text and not message:find(text, 1, true) then
    fail("the error has no %q in it: %s", text, message)
  end
  return message
end

--- d sum(f) / d x by central differences, in the shape of x.
local function numeric_gradient(f, inputs, which, step)
  local x = inputs[which]
  local flat = x:detach():clone():flatten()
  local out = kf.zeros_like(flat)
  for i = 0, flat:numel() - 1 do
    local sums = {}
    for side, sign in ipairs({ 1, -1 }) do
      local moved = flat:clone()
      moved[i] = flat[i]:item() + sign * step
      local arguments = { unpack(inputs) }
      arguments[which] = moved:view(x.shape)
      sums[side] = f(unpack(arguments)):sum():item()
    end
    out[i] = (sums[1] - sums[2]) / (2 * step)
  end
  return out:view(x.shape)
end

--- The gradients of sum(f(...)) against central differences. Inputs must be float64.
---@param f fun(...): any
function M.gradcheck(f, ...)
  local inputs = {}
  for i, x in ipairs({ ... }) do
    if not kf.is_tensor(x) or x.dtype ~= "float64" then
      error(("gradcheck: input %d must be a float64 tensor, got %s"):format(i, kf.is_tensor(x) and x.dtype or type(x)), 2)
    end
    inputs[i] = x:detach():clone():requires_grad_()
  end
  if #inputs == 0 then
    error("gradcheck: at least one input (a float64 tensor) is needed", 2)
  end
  local gradients = { kf.grad(f(unpack(inputs)):sum(), inputs, { allow_unused = true }) }
  for i, x in ipairs(inputs) do
    local numeric = kf.no_grad(numeric_gradient, f, inputs, i, 1e-6)
    local analytic = gradients[i] or kf.zeros_like(x)
    local worst = (analytic - numeric):abs():max():item()
    local scale = math.max(1, numeric:abs():max():item())
    if not (worst <= 1e-5 * scale) then -- luacheck: ignore 581 (NaN fails)
      fail("gradcheck: input %d: gradients differ by %g\n  backward %s\n  numeric  %s", i, worst, tostring(analytic), tostring(numeric))
    end
  end
end

return M
