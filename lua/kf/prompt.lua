--- The interactive prompt's Lua half: evaluation, printing, completion.
local pretty = require("kf.pretty")
local native = require("kf.native")

local M = {}

-- What is typed sees globals and `kf`; its own globals stay here.
local environment = setmetatable({ kf = require("kf") }, { __index = _G })
environment._G = environment

local function compile(text)
  text = text:gsub("^%s*=", "return ", 1) -- the habit of Lua's own prompt
  local chunk, problem = loadstring("return " .. text, "=stdin")
  if not chunk then
    chunk, problem = loadstring(text, "=stdin")
  end
  return chunk, problem
end

--- "more" when `text` is an unfinished chunk; otherwise runs it, prints what it returns, and gives "done" or an error message.
function M.evaluate(text)
  local chunk, problem = compile(text)
  if not chunk then
    return problem:find("'<eof>'", 1, true) and "more" or problem
  end
  setfenv(chunk, environment)
  local results = { xpcall(chunk, function(message)
    return debug.traceback(tostring(message), 2):gsub("\n%s*%[C%]: in function 'xpcall'.*$", "")
  end) }
  if not results[1] then
    return results[2]
  end
  local count = 0
  for i in pairs(results) do
    count = math.max(count, i)
  end
  for i = 2, count do
    print(pretty.text(results[i]))
  end
  return "done"
end

--- The names that may stand after `value`.
local function names_of(value)
  local names = {}
  if type(value) == "table" then
    for name in pairs(value) do
      if type(name) == "string" then
        names[#names + 1] = name
      end
    end
  elseif native.is_tensor(value) then
    for _, name in ipairs(native.op.list()) do
      names[#names + 1] = name
    end
  end
  if value == environment.kf.op then
    names = native.op.list()
  end
  return names
end

local function resolve(path)
  local value = environment
  for name in path:gmatch("[%w_]+") do
    local ok, inner = pcall(function()
      return value[name]
    end)
    if not ok or inner == nil then
      return nil
    end
    value = inner
  end
  return value
end

--- The words that may replace the last one of `line`, sorted: names behind a dot or colon, globals, keys of a job.
function M.complete(line)
  local path, word = line:match("([%w_%.]-)[%.:]([%w_]*)$")
  local names
  if path and path ~= "" then
    names = names_of(resolve(path))
  else
    word = line:match("[%w_]*$")
    names = names_of(_G)
    names[#names + 1] = "kf"
    for name in pairs(environment) do
      names[#names + 1] = name
    end
    for _, key in ipairs(native.config_words()) do
      names[#names + 1] = key
    end
  end
  local found, seen = {}, {}
  for _, name in ipairs(names) do
    if name:sub(1, #word) == word and not seen[name] and (name:sub(1, 1) ~= "_" or word:sub(1, 1) == "_") then
      seen[name] = true
      found[#found + 1] = name
    end
  end
  table.sort(found)
  return found, word
end

return M
