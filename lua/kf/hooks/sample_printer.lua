--- Prints what the model writes, after every evaluation or every so many steps; keeps it in the run's artifacts/samples.json, and gives it
--- to sinks that show texts (samples/1, ...).
--- `hooks = { require("kf.hooks.sample_printer").new({ prompts = { "The ", "Once " } }) }`
local options = require("kf.options")
local M = {}

M.doc = "Print continuations of prompts into the log, and keep them in artifacts/samples.json."
M.fields = {
  { "prompts", "list", default = { "The " }, doc = "Texts to continue." },
  { "every", "int", default = 0, min = 0, doc = "Steps between two prints; 0 prints after each evaluation." },
  { "max_new_tokens", "int", default = 0, min = 0, doc = "Length of a continuation; 0: as [generate] says, or what fits." },
  { "temperature", "float", default = 1.0, min = 0, doc = "0 takes the likeliest token." },
  { "seed", "int", default = 0, min = 0, doc = "Of the draws: the same at every print, so that texts can be compared." },
}

local MOST = 1000 -- samples that are kept, the newest ones

--- What a model of bytes writes need not be text: bytes that are no UTF-8 as "\xff".
local function utf8(text)
  return (
    text:gsub("[\128-\255][\128-\191]*", function(bytes)
      local first, second = bytes:byte(1, 2)
      local size = first >= 0xF0 and 4 or first >= 0xE0 and 3 or 2
      local low = first == 0xE0 and 0xA0 or first == 0xF0 and 0x90 or 0x80
      local high = first == 0xED and 0x9F or first == 0xF4 and 0x8F or 0xBF
      if first >= 0xC2 and first <= 0xF4 and #bytes == size and second >= low and second <= high then
        return bytes
      end
      return (bytes:gsub(".", function(byte)
        return ("\\x%02x"):format(byte:byte())
      end))
    end)
  )
end

---@param opts? { prompts?: string[], every?: integer, max_new_tokens?: integer, temperature?: number, seed?: integer }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("sample_printer", M.fields, opts)
  local how = { temperature = o.temperature, seed = o.seed }
  if o.max_new_tokens > 0 then
    how.max_new_tokens = o.max_new_tokens
  end
  local samples = {}
  local function print_samples(ctx)
    for i, prompt in ipairs(o.prompts) do
      local text = ctx:generate(prompt, how)
      kf.log.info("step %d: %q -> %q", ctx.step, prompt, text)
      ctx:log_text("samples/" .. i, prompt .. text)
      samples[#samples + 1] = { step = ctx.step, prompt = utf8(prompt), text = utf8(text) }
    end
    while #samples > MOST do
      table.remove(samples, 1)
    end
    ctx:write_artifact("samples.json", samples)
  end
  return {
    name = "sample_printer",
    every = o.every > 0 and o.every or nil,
    on_step_end = o.every > 0 and print_samples or nil,
    on_eval_end = o.every == 0 and print_samples or nil,
    state = function()
      return { samples = samples }
    end,
    load = function(state)
      samples = state.samples or {}
    end,
  }
end

return M
