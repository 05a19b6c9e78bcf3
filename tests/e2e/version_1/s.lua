local kf = require("kf")
local made = 0
kf.register.scheduler("halving", function()
  return {
    function(step) made = made + 1 return 0.5 ^ math.floor(step / 4) end,
    state = function() return made end,
    load = function(n) made = n print("> the schedule was asked " .. n .. " times") end,
  }
end)
local seen = 0
local counter = {
  name = "counter",
  on_step_end = function(ctx)
    seen = seen + 1
    if ctx.step == 4 then ctx:stop("enough") end
  end,
  state = function() return { seen = seen, word = "é\"\n" } end,
  load = function(s) seen = s.seen print("> the hook had seen " .. s.seen .. " steps, and " .. (s.word == "é\"\n" and "its word" or "another")) end,
}
return {
  model = { dim = 8, n_layers = 1, n_heads = 2, n_kv_heads = 1, vocab_size = 257, max_seq_len = 16, tie_embeddings = true },
  train = { batch_size = 2, seq_len = 16, max_steps = 10, mixed_precision = "fp32" },
  optimizer = { lr = 1e-2 },
  scheduler = { name = "halving", warmup_steps = 0 },
  data = { dataset_path = "text", file_pattern = "*.txt" },
  eval = { enabled = true, interval = 2, steps = 1, dataset_path = "text", file_pattern = "b.txt" },
  checkpoint = { interval = 2 },
  hooks = { counter },
  metrics = { log_interval = 1, goodput = true },
  phases = { { name = "first", steps = 3, lr_scale = 0.5 }, { name = "second" } },
}
