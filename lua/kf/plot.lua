--- Points as a plot of text, for logs and terminals.
local M = {}

local function bounds(points, index)
  local low, high = math.huge, -math.huge
  for _, point in ipairs(points) do
    low, high = math.min(low, point[index]), math.max(high, point[index])
  end
  return low, high > low and high or low + 1
end

--- Lines of text: a canvas of stars with the range of y at its left and of x below.
---@param points number[][]  { x, y } each
---@param opts? { width?: integer, height?: integer, log_x?: boolean }
---@return string[]
function M.lines(points, opts)
  opts = opts or {}
  local width, height = opts.width or 60, opts.height or 12
  local shown = {}
  for _, point in ipairs(points) do
    if point[2] == point[2] and math.abs(point[2]) < math.huge then -- neither nan nor infinite
      shown[#shown + 1] = { opts.log_x and math.log(point[1]) or point[1], point[2] }
    end
  end
  if #shown == 0 then
    return { "(nothing to plot)" }
  end
  local left, right = bounds(shown, 1)
  local low, high = bounds(shown, 2)
  local rows = {}
  for i = 1, height do
    rows[i] = {}
    for j = 1, width do
      rows[i][j] = " "
    end
  end
  for _, point in ipairs(shown) do
    local column = 1 + math.floor((point[1] - left) / (right - left) * (width - 1) + 0.5)
    local row = height - math.floor((point[2] - low) / (high - low) * (height - 1) + 0.5)
    rows[row][column] = "*"
  end
  local lines = {}
  for i = 1, height do
    local label = i == 1 and ("%.4g"):format(high) or i == height and ("%.4g"):format(low) or ""
    lines[i] = ("%10s |%s"):format(label, table.concat(rows[i]))
  end
  local function x_text(value)
    return ("%.3g"):format(opts.log_x and math.exp(value) or value)
  end
  lines[height + 1] = (" "):rep(11) .. "+" .. ("-"):rep(width)
  local gap = width - #x_text(left) - #x_text(right)
  lines[height + 2] = (" "):rep(12) .. x_text(left) .. (" "):rep(math.max(1, gap)) .. x_text(right)
  return lines
end

return M
