--- Faults that users of such systems met on the border between Lua and C++ (memory, errors, owners, threads, state), as tests.
local kf = require("kf")
local T = require("kf.test")

local function status(key)
  local f = assert(io.open("/proc/self/status"))
  local text = f:read("*a")
  f:close()
  return tonumber(text:match(key .. ":%s+(%d+)"))
end

local function job(name, more)
  local out = {
    run = { name = name },
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 64, max_seq_len = 16 },
    train = { batch_size = 2, seq_len = 16, max_steps = 8, mixed_precision = "fp32" },
    optimizer = { lr = 1e-2 },
    scheduler = { name = "none" },
    checkpoint = { interval = 4 },
    metrics = { log_interval = 1 },
  }
  for section, values in pairs(more or {}) do
    out[section] = values
  end
  return out
end

T.test("memory: a loop of tensors stays small without a call of the collector (L1)", function()
  kf.zeros({ 10000 })
  local before = status("VmRSS")
  for _ = 1, 100000 do
    kf.zeros({ 10000 })
  end
  T.ok(status("VmRSS") - before < 200000, "grown by " .. status("VmRSS") - before .. " kB")
end)

T.test("errors: they cross the border a hundred thousand times and leave nothing behind (L2)", function()
  local a, b = kf.ones({ 2, 3 }), kf.ones({ 2, 3 })
  local function wrong()
    return a:matmul(b)
  end
  local ok, message = pcall(wrong)
  T.ok(not ok and message:find("cases_spec.lua:%d+:") and message:find("mat1 and mat2", 1, true), message)
  for _ = 1, 1000 do
    pcall(wrong)
  end
  collectgarbage()
  local before = status("VmRSS")
  for _ = 1, 100000 do
    pcall(wrong)
  end
  collectgarbage()
  T.ok(status("VmRSS") - before < 20000, "grown by " .. status("VmRSS") - before .. " kB")
end)

T.test("errors: through Lua, the host and Lua again, with the first line first (L2)", function()
  local ok, message = pcall(kf.run, job("inner", {
    hooks = {
      {
        on_step_end = function()
          error("from the inside")
        end,
      },
    },
  }))
  T.ok(not ok and message:find("^[^\n]*cases_spec.lua:%d+: from the inside"), message)
  T.ok(message:find("on_step_end at step 1", 1, true), message)
end)

T.test("owners: views outlive their base, and values the names that made them (L3)", function()
  local view
  do
    local base = kf.arange(1000000, { dtype = "float32" })
    view = base[{ { 10, 20 } }]
  end
  collectgarbage()
  collectgarbage()
  T.near(view:sum():item(), 145)
  local product = kf.ones({ 3 }, { requires_grad = true }) * 2
  collectgarbage()
  product:sum():backward() -- the graph holds the leaf
end)

T.test("threads: a run has the loader threads that it asks for, and ends all that it started (L4)", function()
  local runs = 0
  local function threads(workers)
    local seen
    runs = runs + 1
    kf.run(job("threads-" .. runs, {
      data = { num_workers = workers },
      hooks = {
        {
          on_step_end = function()
            seen = status("Threads")
          end,
        },
      },
    }))
    return seen
  end
  threads(0)
  local after = status("Threads")
  T.eq(threads(4), threads(0) + 4)
  T.eq(status("Threads"), after)
end)

T.test("state: a hook that steers by what it remembers resumes as if nothing had happened (L5)", function()
  local function steered(name)
    local mean = 0
    return job(name, {
      hooks = {
        {
          name = "thermostat",
          on_step_end = function(ctx)
            mean = 0.9 * mean + 0.1 * ctx:loss()
            ctx:set_lr_scale(1 / (1 + mean))
          end,
          state = function()
            return { mean = mean }
          end,
          load = function(state)
            mean = state.mean
          end,
        },
      },
    })
  end
  local straight = kf.run(steered("straight"))
  local cut = kf.run(steered("cut"))
  T.eq(cut.loss, straight.loss)
  os.execute("cd runs/cut && rm -rf result.json checkpoints/step_8 checkpoints/latest && ln -s step_4 checkpoints/latest")
  local resumed = kf.run(steered("cut"))
  T.eq(resumed.status, "complete")
  T.eq(resumed.loss, straight.loss)
  T.eq(#resumed.history, #straight.history)
  for i, row in ipairs(straight.history) do
    T.eq(resumed.history[i].loss, row.loss)
    T.eq(resumed.history[i].lr, row.lr)
  end
end)
