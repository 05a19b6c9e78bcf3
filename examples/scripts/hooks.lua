--- Logging and control: own numbers in the rows, samples of text, the best weights kept, an end when it is good enough.
--- Run it: kf-host examples/scripts/hooks.lua
local kf = require("kf")
local early_stop = require("kf.hooks.early_stop")

local watch = {
  name = "watch",
  every = 5, -- step events only
  on_step_end = function(ctx)
    ctx:log({ tokens_per_parameter = ctx.tokens / ctx.n_params })
  end,
  on_eval_end = function(ctx, eval)
    kf.log.info("step %d, %.1f epochs: %s", ctx.step, ctx.epoch, ctx:generate("The ", { max_new_tokens = 24 }))
    if eval.loss < 1.0 then
      ctx:stop("good enough")
    end
  end,
}

---@type kf.Config
return {
  extends = "../toy/job.toml",
  run = { name = "hooks" },
  hooks = { watch, early_stop.new({ patience = 2 }) },
}
