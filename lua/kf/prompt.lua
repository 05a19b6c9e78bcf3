--- The interactive prompt's Lua half: evaluation, printing, completion.
local pretty = require("kf.pretty")
local native = require("kf.native")

local M = {}

-- A chunk may replace Lua's own functions, for itself and later ones: the prompt keeps those of the beginning.
local concat, error, jit_off, loadstring, setfenv, type = table.concat, error, jit.off, loadstring, setfenv, type
local find, gmatch, gsub, match, select = string.find, string.gmatch, string.gsub, string.match, select
local getmetatable, next, rawget = debug.getmetatable, next, rawget

-- What is typed sees globals and `kf`; its own globals stay here.
local environment = setmetatable({ kf = require("kf") }, { __index = _G })
environment._G = environment

local function compile(text, name)
  text = gsub(text, "^%s*=", "return ", 1) -- the habit of Lua's own prompt
  local chunk, problem = loadstring("return " .. text, name)
  if not chunk then
    chunk, problem = loadstring(text, name)
  end
  return chunk, problem
end

--- What is wrong with a chunk before it runs: "more" when it is unfinished, a message, or nil.
function M.problem(text, name)
  local chunk, problem = compile(text, name)
  if chunk then
    return nil
  end
  return find(problem, "'<eof>'", 1, true) and "more" or problem
end

--- "more" when `text` is an unfinished chunk; otherwise runs it, prints what it returns, and gives "done" or an error message.
function M.evaluate(text)
  local chunk, problem = compile(text, "=stdin")
  if not chunk then
    return find(problem, "'<eof>'", 1, true) and "more" or problem
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

-- Names of Lua behind which no chunk leaves anything that another one finds.
local harmless = {}
for name in
  ([[_VERSION assert bit collectgarbage coroutine ctx error io ipairs jit kf load loadstring math next os pairs pcall print rawequal
  rawget select string table tonumber tostring type unpack xpcall]]):gmatch("%S+")
do
  harmless[name] = true
end

-- Names without which later chunks, of all prompts, could do nothing.
local kept = { ctx = true, kf = true, print = true, os = true, _G = true }

--- The names of `variables` and of the script's globals, or of the fields of what `path` names among them: tables are looked at as they
--- lie there, so nothing of theirs is called.
local function names_behind(path, variables)
  local names = {}
  local function add(values)
    for name in next, type(values) == "table" and values or {} do
      names[#names + 1] = type(name) == "string" and match(name, "^[%a_][%w_]*$") or nil
    end
  end
  if path == "" then
    add(variables)
    add(_G)
    return names
  end
  local value
  for name in gmatch(path, "[%w_]+") do
    if value == nil then
      value = rawget(variables, name)
      value = value == nil and rawget(_G, name) or value
    else
      value = type(value) == "table" and rawget(value, name) or nil
    end
    if value == nil then
      return names
    end
  end
  add(value)
  local meta = getmetatable(value)
  add(type(meta) == "table" and rawget(meta, "__index"))
  return names
end

--- For chunks that are said to a run, of which `ctx` is the context. They see it, `kf` and the script's globals; what they set themselves
--- stays for later ones. Gives three functions: compile(text) -> function, or nil and a message; show(values...) -> text;
--- touched() -> whether a chunk, since the last call, has set a variable or reached for something of the script's or of an earlier chunk in
--- which it could have left something.
function M.live(ctx)
  local variables, touched = { kf = environment.kf, ctx = ctx }, false
  variables.os = setmetatable({
    exit = function()
      error("os.exit would end the run: ctx:stop() does that with a checkpoint; Ctrl-D leaves the prompt alone", 2)
    end,
  }, { __index = os })
  local live = setmetatable({}, {
    __index = function(_, name)
      local value = variables[name]
      if value == nil then
        value = _G[name]
      end
      local kind = type(value)
      if not harmless[name] and kind ~= "nil" and kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
        touched = true
      end
      return value
    end,
    __newindex = function(_, name, value)
      if kept[name] then
        error("'" .. name .. "' belongs to the run; take another name", 2)
      end
      touched = true
      variables[name] = value
    end,
  })
  variables._G = live
  return function(text)
    local asked = match(text, "^%-%-names of ([%w_%.]*)$") -- attach/frame.h
    if asked then
      return function()
        return concat(names_behind(asked, variables), " ")
      end
    end
    local chunk, problem = compile(text, "=attach")
    if not chunk then
      return nil, problem
    end
    jit_off(chunk, true) -- machine code could not be interrupted
    return setfenv(chunk, live)
  end, function(...)
    local texts = {}
    for i = 1, select("#", ...) do
      texts[i] = pretty.text((select(i, ...))) .. "\n"
    end
    return concat(texts)
  end, function()
    local was = touched
    touched = false
    return was
  end
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
--- `more`: values by name that are known besides.
function M.complete(line, more)
  for name, value in pairs(more or {}) do
    environment[name] = value
  end
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
