--- Hooks on modules and weights by name: what they see, what they change, when they end, how they fail.
local kf = require("kf")
local nn = kf.nn
local T = require("kf.test")

local function write_text()
  os.execute("mkdir -p text")
  local file = assert(io.open("text/lines.txt", "w"))
  for i = 1, 400 do
    file:write(("line %d says that %d is not %d\n"):format(i, i * 7 % 31, i * 3 % 17))
  end
  file:close()
end
write_text()

kf.register.block("lua_block", function(a)
  local m = a.config.model
  return nn.module({
    attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = a.layer }),
    mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    mlp = nn.module({
      up = nn.linear(m.dim, a.hidden_dim),
      down = nn.linear(a.hidden_dim, m.dim, { init = "output" }),
      forward = function(self, x)
        return self.down(self.up(x):tanh())
      end,
    }),
    forward = function(self, x, ctx)
      local h = x + self.attention(self.attention_norm(x), ctx)
      return h + self.mlp(self.mlp_norm(h))
    end,
  })
end)

local runs = 0

--- A toy run with a hook on train_begin; returns its result, its weights and the name of the run.
local function train(on_train_begin, changes)
  runs = runs + 1
  local job = {
    run = { name = "run-" .. runs },
    model = { dim = 32, n_layers = 2, n_heads = 4, n_kv_heads = 2, vocab_size = 320, max_seq_len = 32 },
    train = { batch_size = 4, seq_len = 32, max_steps = 3, mixed_precision = "fp32" },
    optimizer = { lr = 1e-2 },
    scheduler = { name = "none" },
    data = { dataset_path = "text", file_pattern = "*" },
    metrics = { log_interval = 1 },
    checkpoint = { interval = 1000 },
    hooks = on_train_begin and { { name = "watch", on_train_begin = on_train_begin } } or {},
  }
  for section, keys in pairs(changes or {}) do
    for key, value in pairs(keys) do
      job[section][key] = value
    end
  end
  local result = kf.run(job)
  return result, kf.safetensors.load(result.checkpoint .. "/model.safetensors"), job.run.name
end

local function same_weights(a, b)
  for name, tensor in pairs(a) do
    T.ok(tensor:equal(b[name]), name .. " is the same")
  end
end

T.test("forward hooks: see name, input and output of the layers that match, and change nothing by looking", function()
  local seen, shapes = {}, {}
  -- Whole layers by one kernel show nothing of their inside, and round otherwise than the formulas that take their place.
  local formulas = { train = { compile_model = false } }
  local _, watched = train(function(ctx)
    ctx:register_forward_hook("layers.*.mlp.*_proj", function(name, input, output)
      seen[name] = (seen[name] or 0) + 1
      shapes[name] = { input:size(-1), output:size(-1) }
    end)
    ctx:register_forward_hook("layers.1", function(name, input, output)
      seen[name] = (seen[name] or 0) + 1
      T.eq(input.shape, output.shape)
    end)
  end, formulas)
  T.eq(seen, {
    ["layers.0.mlp.gate_proj"] = 3,
    ["layers.0.mlp.up_proj"] = 3,
    ["layers.0.mlp.down_proj"] = 3,
    ["layers.1.mlp.gate_proj"] = 3,
    ["layers.1.mlp.up_proj"] = 3,
    ["layers.1.mlp.down_proj"] = 3,
    ["layers.1"] = 3,
  })
  T.eq(shapes["layers.0.mlp.down_proj"], { 256, 32 })
  local _, plain = train(nil, formulas)
  same_weights(watched, plain)
end)

T.test("forward hooks: what they return stands for the output, also where layers are recomputed", function()
  local function halve(ctx)
    ctx:register_forward_hook("layers.0.mlp", function(_, _, output)
      return output * 0.5
    end)
  end
  local _, plain = train()
  local _, changed = train(halve)
  T.ok(not changed["layers.0.mlp.up_proj.weight"]:equal(plain["layers.0.mlp.up_proj.weight"]), "the hook has an effect")
  local _, recomputed = train(halve, { train = { activation_checkpointing = "full" } })
  same_weights(changed, recomputed)
  local _, after = train()
  same_weights(plain, after)
end)

T.test("forward hooks: modules written in Lua have them under their names", function()
  local seen = {}
  train(function(ctx)
    ctx:register_forward_hook("layers.*", function(name)
      seen[name] = true
    end)
  end, { model = { block = "lua_block" } })
  for _, name in ipairs({ "layers.0", "layers.1.attention", "layers.0.attention.q_proj", "layers.1.mlp", "layers.0.mlp.up" }) do
    T.ok(seen[name], name .. " was seen")
  end
end)

T.test("gradient hooks: see every gradient, and what they return is what the optimizer gets", function()
  local seen = {}
  local _, plain = train()
  local _, watched = train(function(ctx)
    ctx:register_gradient_hook("*", function(name, gradient)
      seen[name] = (seen[name] or 0) + 1
      T.eq(gradient.dtype, "float32")
    end)
  end)
  same_weights(plain, watched)
  for name in pairs(plain) do
    T.eq({ name, seen[name] }, { name, 3 })
  end
  local _, still = train(function(ctx)
    ctx:register_gradient_hook("layers.0.*", function(_, gradient)
      return gradient * 0
    end)
  end, { optimizer = { weight_decay = 0 } })
  local _, frozen = train(nil, { optimizer = { weight_decay = 0 }, train = { max_steps = 1 } })
  T.ok(not still["layers.1.mlp.up_proj.weight"]:equal(frozen["layers.1.mlp.up_proj.weight"]), "others train")
  local first = train(function(ctx)
    ctx:register_gradient_hook("*", function(_, gradient)
      return gradient * 0
    end)
  end)
  T.eq(first.history[1].grad_norm, 0)
end)

T.test("hooks on modules: a handle ends them before the run does", function()
  local calls = 0
  runs = runs + 1
  local handle
  kf.run({
    run = { name = "run-" .. runs },
    model = { dim = 32, n_layers = 1, n_heads = 4, vocab_size = 320, max_seq_len = 32 },
    train = { batch_size = 4, seq_len = 32, max_steps = 4, mixed_precision = "fp32" },
    data = { dataset_path = "text", file_pattern = "*" },
    hooks = {
      {
        on_train_begin = function(ctx)
          handle = ctx:register_forward_hook("norm", function()
            calls = calls + 1
          end)
        end,
        on_step_end = function(ctx)
          if ctx.step == 2 then
            handle:remove()
          end
        end,
      },
    },
  })
  T.eq(calls, 2)
  handle:remove()
end)

T.test("hooks on modules: without a run, on the module itself or below it", function()
  local m = nn.module({
    up = nn.linear(4, 8),
    down = nn.linear(8, 4),
    forward = function(self, x)
      return self.down(self.up(x)), "second result"
    end,
  }):materialize()
  local x = kf.randn({ 2, 4 })
  local plain = m(x)
  local names = {}
  local below = m:register_forward_hook("*", function(name)
    names[#names + 1] = name
  end)
  local own = m:register_forward_hook(function(name, input, output)
    T.eq({ name, input:equal(x) }, { "", true })
    return output + 1
  end)
  local y, second = m(x)
  T.ok(y:equal(plain + 1), "the hook's output")
  T.eq({ names, second }, { { "up", "down" }, "second result" })
  below:remove()
  own:remove()
  T.ok(m(x):equal(plain) and #names == 2, "both have ended")
end)

T.test("hooks on modules: errors name the hook, the layer and the line", function()
  local function message_of(on_train_begin)
    return T.raises(function()
      train(on_train_begin)
    end, "")
  end
  T.ok(message_of(function(ctx)
    ctx:register_forward_hook("layer.*", print)
  end):find("layer.*", 1, true), "a pattern that matches nothing")
  local message = message_of(function(ctx)
    ctx:register_forward_hook("layers.1.mlp", function()
      error("this hook fails")
    end)
  end)
  T.ok(message:find("module_hooks_spec.lua:%d+: this hook fails"), message)
  T.ok(message:find("forward hook on 'layers.1.mlp'", 1, true), message)
  message = message_of(function(ctx)
    ctx:register_gradient_hook("norm.weight", function()
      error("that hook fails")
    end)
  end)
  T.ok(message:find("module_hooks_spec.lua:%d+: that hook fails"), message)
  message = message_of(function(ctx)
    ctx:register_forward_hook("layers.1.mlp", function(_, _, output)
      return output:sum()
    end)
  end)
  T.ok(message:find("what it returns stands for float32 (4, 32, 32), got float32 scalar", 1, true), message)
  T.raises(function()
    nn.linear(2, 2):register_forward_hook(5)
  end, "m:register_forward_hook: expected a function, got number 5")
end)
