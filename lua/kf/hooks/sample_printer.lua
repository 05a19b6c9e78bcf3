--- Prints what the model writes, after every evaluation or every so many steps; sinks that show texts get it, too (samples/1, ...).
--- `hooks = { require("kf.hooks.sample_printer").new({ prompts = { "The ", "Once " } }) }`
local options = require("kf.options")
local M = {}

M.doc = "Print continuations of prompts into the log."
M.fields = {
  { "prompts", "list", default = { "The " }, doc = "Texts to continue." },
  { "every", "int", default = 0, min = 0, doc = "Steps between two prints; 0 prints after each evaluation." },
  { "max_new_tokens", "int", default = 0, min = 0, doc = "Length of a continuation; 0: as [generate] says, or what fits." },
  { "temperature", "float", default = 1.0, min = 0, doc = "0 takes the likeliest token." },
  { "seed", "int", default = 0, min = 0, doc = "Of the draws: the same at every print, so that texts can be compared." },
}

---@param opts? { prompts?: string[], every?: integer, max_new_tokens?: integer, temperature?: number, seed?: integer }
---@return kf.Hook
function M.new(opts)
  local kf = require("kf")
  local o = options.read("sample_printer", M.fields, opts)
  local how = { temperature = o.temperature, seed = o.seed }
  if o.max_new_tokens > 0 then
    how.max_new_tokens = o.max_new_tokens
  end
  local function print_samples(ctx)
    for i, prompt in ipairs(o.prompts) do
      local answer = ctx:generate(prompt, how)
      kf.log.info("step %d: %q -> %q", ctx.step, prompt, answer)
      ctx:log_text("samples/" .. i, prompt .. answer)
    end
  end
  if o.every > 0 then
    return { name = "sample_printer", every = o.every, on_step_end = print_samples }
  end
  return { name = "sample_printer", on_eval_end = print_samples }
end

return M
