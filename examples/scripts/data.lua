--- Data from a Lua generator beside text that a transform cleans, and a number of one's own in every row.
--- Run it: kf-host examples/scripts/data.lua --transform.drop_short.min_bytes=400
local kf = require("kf")

kf.register.dataset("counting", function(a)
  return { -- sample i, from 0, as a list of seq_len + 1 ids; any i at any time, always the same
    size = 10000,
    get = function(i)
      local ids = {}
      for k = 0, a.seq_len do
        ids[k + 1] = (i + k * (1 + i % 7)) % 256
      end
      return ids
    end,
  }
end, { doc = "Arithmetic progressions modulo 256." })

kf.register.transform("drop_short", function(a)
  local min = a.options.min_bytes
  return function(doc) -- the document, another one, or nil to drop it
    return #doc.text >= min and doc or nil
  end
end, { fields = { { "min_bytes", "int", default = 200, min = 0, doc = "Shortest document kept." } } })

kf.register.metric("perplexity", function()
  return {
    every = 10,
    compute = function(ctx)
      return math.exp(ctx:metrics().ce)
    end,
  }
end, { doc = "exp of the step's cross entropy." })

---@type kf.Config
return {
  extends = "../toy/job.toml",
  run = { name = "data" },
  data = {
    dataset_path = "",
    holdout = 0,
    datasets = {
      { name = "numbers", dataset = "counting", weight = 0.3 },
      { name = "pages", path = "docs", weight = 0.7, transforms = { "drop_short" } },
    },
  },
  eval = { dataset_path = "docs", file_pattern = "running.md" },
  metrics = { extra = { "perplexity" }, sinks = { "csv" } },
}
