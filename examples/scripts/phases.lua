--- Phases by what the run does, not only by step numbers: warm up the embeddings, train until it is good enough, cool down.
--- Run it: kf-host examples/scripts/phases.lua
---@type kf.Config
return {
  extends = "../toy/job.toml",
  run = { name = "phases" },
  train = { max_steps = 80 },
  phases = {
    { name = "embeddings", steps = 10, freeze = { "layers.*" } },
    {
      name = "main",
      steps = 40, -- at most
      seq_len = 32,
      stop_when = function(ctx)
        return ctx.eval ~= nil and ctx.eval.loss < 3.2
      end,
    },
    {
      name = "cooldown",
      lr_scale = function(t) -- t runs from 0 to 1 over the phase
        return 1 - t
      end,
    },
  },
}
