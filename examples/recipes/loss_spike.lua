--- Warn when the loss leaves its running mean, log the ratio, and stop when it is no number. The mean is kept in checkpoints.
--- Run it: kf-host examples/recipes/loss_spike.lua --hook.loss_spike.factor=1.5
local kf = require("kf")

kf.register.hook("loss_spike", function(a)
  local factor = a.options.factor
  local mean
  return {
    every = a.options.every,
    on_step_end = function(ctx)
      local loss = ctx:loss() -- a method, not a field: it waits for the device
      if not loss then
        return -- a step without a label that counts
      end
      if loss ~= loss then
        ctx:stop("the loss is not a number")
        return
      end
      if mean then
        ctx:log({ loss_to_mean = loss / mean })
        if loss > factor * mean then
          kf.log.warn("loss %.3f is %.1fx its mean at step %d", loss, loss / mean, ctx.step)
        end
      end
      mean = mean and 0.98 * mean + 0.02 * loss or loss
    end,
    state = function()
      return { mean = mean }
    end,
    load = function(state)
      mean = state.mean
    end,
  }
end, {
  doc = "Warns when the loss is above `factor` times its running mean.",
  fields = {
    { "factor", "float", default = 3, min = 1, doc = "How many times the mean is a spike." },
    { "every", "int", default = 5, min = 1, doc = "Look every so many steps." },
  },
})

---@type kf.Config
return {
  extends = "../toy/job.toml",
  hooks = { { "loss_spike", factor = 2 } },
}
