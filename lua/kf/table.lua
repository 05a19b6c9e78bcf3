--- Rows of values as an aligned table of text.
local M = {}

local function cell(value)
  if value == nil then
    return "-"
  elseif type(value) == "number" then
    return ("%.6g"):format(value)
  end
  return tostring(value)
end

--- The names of all columns, sorted: Lua tables have no order of their own.
local function columns_of(rows)
  local seen, names = {}, {}
  for _, row in ipairs(rows) do
    for name in pairs(row) do
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return names
end

--- One line of text for the header and one for each row: text to the left, numbers to the right.
---@param rows table[]  tables with the same keys, more or less
---@param columns? string[]  which columns, in this order (default: all, sorted)
---@return string
function M.format(rows, columns)
  columns = columns or columns_of(rows)
  local widths, numeric = {}, {}
  for i, name in ipairs(columns) do
    widths[i], numeric[i] = #tostring(name), true
    for _, row in ipairs(rows) do
      widths[i] = math.max(widths[i], #cell(row[name]))
      numeric[i] = numeric[i] and (row[name] == nil or type(row[name]) == "number")
    end
  end
  local lines = {}
  local function add(text_of)
    local cells = {}
    for i, name in ipairs(columns) do
      cells[i] = ("%" .. (numeric[i] and "" or "-") .. widths[i] .. "s"):format(text_of(name))
    end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  add(tostring)
  for _, row in ipairs(rows) do
    add(function(name)
      return cell(row[name])
    end)
  end
  return table.concat(lines, "\n")
end

--- Prints rows as an aligned table.
---@param rows table[]
---@param columns? string[]
function M.print(rows, columns)
  if type(rows) ~= "table" then
    error(("kf.print_table: expected a list of tables, got %s"):format(type(rows)), 2)
  end
  for i, row in ipairs(rows) do
    if type(row) ~= "table" then
      error(("kf.print_table: row %d is a %s, not a table"):format(i, type(row)), 2)
    end
  end
  print(M.format(rows, columns))
end

return M
