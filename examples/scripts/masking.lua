--- A transform of batches: some tokens are hidden from the model, and only what it cannot see counts (a denoising objective). It runs
--- on the training thread, behind the threads that read ahead; its draws come from kf.rng, so a run that goes on hides the same tokens.
--- Run it: kf-host examples/scripts/masking.lua --transform.mask.share=0.2
local kf = require("kf")

kf.register.transform("mask", function(a)
  local share, hidden = a.options.share, a.options.hidden_id
  local masked = 0
  return {
    function(batch) -- tokens and labels (B, T) int64
      local hide = kf.rand({ batch.tokens:size() }):lt(share)
      batch.labels = batch.labels:where(hide, -100) -- -100 does not count
      batch.tokens:masked_fill_(hide, hidden)
      masked = masked + hide:sum():item()
      return batch
    end,
    state = function()
      return masked
    end,
    load = function(saved)
      masked = saved
    end,
  }
end, {
  doc = "Hides tokens from the model and asks for what follows them.",
  fields = {
    { "share", "float", default = 0.15, min = 0, max = 1, doc = "Of the tokens, how many are hidden." },
    { "hidden_id", "int", default = 0, min = 0, doc = "The id that stands in their place." },
  },
})

---@type kf.Config
return {
  extends = "../toy/job.toml",
  run = { name = "masking" },
  data = { batch_transforms = { "mask" } },
}
