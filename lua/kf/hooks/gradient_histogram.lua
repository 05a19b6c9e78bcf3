--- Prints how large the gradients of each weight are: a bar for each power of ten, before clipping.
--- `hooks = { require("kf.hooks.gradient_histogram").new({ every = 100, pattern = "layers.*" }) }`
local options = require("kf.options")
local M = {}

M.doc = "Print a histogram of gradient magnitudes by weight."
M.fields = {
  { "every", "int", default = 100, min = 1, doc = "Updates between two prints." },
  { "pattern", "string", default = "*", doc = "Name pattern of the weights." },
  { "low", "int", default = -10, doc = "Smallest power of ten." },
  { "high", "int", default = 0, doc = "Largest power of ten." },
}

local bars = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

--- Counts as a line of bars, the tallest for the largest count.
function M.bars(counts)
  local most, out = math.max(1, unpack(counts)), {}
  for i, count in ipairs(counts) do
    out[i] = bars[1 + math.ceil(count / most * (#bars - 1))]
  end
  return table.concat(out)
end

---@param opts? { every?: integer, pattern?: string, low?: integer, high?: integer }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("gradient_histogram", M.fields, opts)
  return {
    name = "gradient_histogram",
    every = o.every,
    on_backward_end = function(ctx)
      local lines = {}
      for name, grad in ctx:gradients(o.pattern) do
        local powers = grad:float():abs():clamp_min(1e-38):log10():clamp(o.low, o.high)
        local counts = powers:histc(o.high - o.low, o.low, o.high):tolist()
        lines[#lines + 1] = ("  %-48s %9.2e |%s|"):format(name, grad:norm():item(), M.bars(counts))
      end
      table.sort(lines)
      kf.log.info("step %d: gradients, norm and share by power of ten from %d to %d\n%s", ctx.step, o.low, o.high,
        table.concat(lines, "\n"))
    end,
  }
end

return M
