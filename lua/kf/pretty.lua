--- Values as readable text: tables with sorted keys, tensors as they print themselves.
local M = {}

-- A chunk that is said to a run may replace Lua's own functions: what shows its values keeps those of the beginning.
local getmetatable, ipairs, pairs, tostring, type = getmetatable, ipairs, pairs, tostring, type
local find, format, gsub, match = string.find, string.format, string.gsub, string.match
local concat, sort = table.concat, table.sort

local function key_text(key)
  if type(key) == "string" and match(key, "^[%a_][%w_]*$") then
    return key
  end
  return "[" .. (type(key) == "string" and format("%q", key) or tostring(key)) .. "]"
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do
    if type(key) ~= "number" or key < 1 or key > #t or key % 1 ~= 0 then
      keys[#keys + 1] = key
    end
  end
  sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return keys
end

local function write(value, indent, seen)
  if type(value) == "string" then
    return format("%q", value)
  elseif type(value) ~= "table" then
    return (gsub(tostring(value), "\n", "\n" .. indent))
  end
  local meta = getmetatable(value)
  if type(meta) == "table" and meta.__tostring then
    return tostring(value)
  elseif seen[value] then
    return "{ ...itself... }"
  end
  seen[value] = true
  local inner, parts, length = indent .. "  ", {}, 0
  for _, item in ipairs(value) do
    parts[#parts + 1] = write(item, inner, seen)
  end
  for _, key in ipairs(sorted_keys(value)) do
    parts[#parts + 1] = key_text(key) .. " = " .. write(value[key], inner, seen)
  end
  seen[value] = nil
  for _, part in ipairs(parts) do
    length = length + #part + 2
  end
  if #parts == 0 then
    return "{}"
  elseif length < 100 and not find(concat(parts), "\n") then
    return "{ " .. concat(parts, ", ") .. " }"
  end
  return "{\n" .. inner .. concat(parts, ",\n" .. inner) .. ",\n" .. indent .. "}"
end

--- One value as text.
---@param value any
---@return string
function M.text(value)
  return write(value, "", {})
end

return M
