--- Named options with defaults and bounds: the rows of `fields`, read by parts that are used from a script as well as by name.
local M = {}

local types = { int = "number", float = "number", bool = "boolean", string = "string", list = "table" }

local function check(part, row, value)
  local name, kind = row[1], row[2]
  local function wrong(what)
    error(("%s: %s must be %s, got %s"):format(part, name, what, tostring(value)), 4)
  end
  if type(value) ~= types[kind] or (kind == "int" and value ~= math.floor(value)) then
    wrong(kind == "int" and "a whole number" or "a " .. kind)
  end
  if row.min and value < row.min then
    wrong(("at least %g"):format(row.min))
  end
  if row.max and value > row.max then
    wrong(("at most %g"):format(row.max))
  end
  if row.above and value <= row.above then
    wrong(("above %g"):format(row.above))
  end
  if row.below and value >= row.below then
    wrong(("below %g"):format(row.below))
  end
  if row.choices then
    for _, choice in ipairs(row.choices) do
      if value == choice then
        return
      end
    end
    wrong("one of " .. table.concat(row.choices, ", "))
  end
end

--- The options of `part`: what `given` says, defaults for the rest. Errors point at the caller of the function that calls this.
---@param part string  for messages
---@param fields table[]  rows { name, type, default = ..., min = ..., max = ..., above = ..., below = ..., choices = ..., doc = ... }
---@param given? table
---@return table
function M.read(part, fields, given)
  local out, known = {}, {}
  for _, row in ipairs(fields) do
    local value = given and given[row[1]]
    known[#known + 1] = row[1]
    if value == nil then
      value = row.default
    end
    if value == nil then
      error(("%s: '%s' must be given (%s)"):format(part, row[1], row.doc or row[2]), 3)
    end
    check(part, row, value)
    out[row[1]] = value
  end
  for _, name in ipairs(M.names(given)) do
    if out[name] == nil then
      error(("%s: no option '%s'; have: %s"):format(part, name, table.concat(known, ", ")), 3)
    end
  end
  return out
end

--- The keys that a user gave; those of a part's checked options (`a.options`) need no second check.
function M.names(given)
  local names = {}
  if type(given) == "table" then
    for name in pairs(given) do
      names[#names + 1] = tostring(name)
    end
    table.sort(names)
  end
  return names
end

return M
