--- What ranks do together in a script: a term of the loss over the tokens of all ranks, and who is the slowest.
--- Run it: kf-host --nproc 2 examples/scripts/ranks.lua
local kf = require("kf")
local dist = kf.dist

--- Cross entropy, less a share of the entropy of the mean prediction: that mean is over the tokens of all ranks that share the loss.
kf.register.loss("spread", function(a)
  return function(logits, labels) -- (N, V), (N): the sum over counted tokens, and their number
    local keep = labels:ne(-100)
    local count = keep:sum()
    local logp = logits:float():log_softmax(-1)
    local ce = -(logp:gather(1, labels:clamp_min(0):unsqueeze(1)):squeeze(1) * keep):sum()
    -- Every rank goes on with the same mean, for a share of the loss of its own: so gradients are summed (dist.shared).
    local sums = dist.shared(dist.sum((logp:exp() * keep:unsqueeze(1)):sum(0), "data"), "data")
    local mean = sums / dist.sum(count, "data"):clamp_min(1)
    local entropy = -(mean * mean:clamp_min(1e-9):log()):sum()
    return ce - a.options.weight * entropy * count, count
  end
end, { fields = { { "weight", "float", default = 0.01, doc = "Of the entropy." } } })

local began = 0
local slowest = {
  name = "slowest",
  on_step_begin = function()
    began = os.clock()
  end,
  on_step_end = function(ctx)
    local seconds = dist.gather(kf.tensor({ os.clock() - began }), "all") -- one of each rank; all ranks call it
    if ctx.step % 20 == 0 and dist.rank == 0 then
      local rank = seconds:argmax():item()
      kf.log.info("step %d: rank %d of %d was the slowest, %.3f s", ctx.step, rank, kf.mesh.size, seconds[rank]:item())
    end
  end,
}

return { extends = "base.toml", train = { loss_fn = "spread", batch_size = 4 }, hooks = { slowest } }
