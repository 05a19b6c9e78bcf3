--- Parts written in Lua train like their native twins: toy runs of a few steps, compared by their checkpoints.
local kf = require("kf")
local nn = kf.nn
local T = require("kf.test")

kf.register.block("lua_llama", function(a)
  local m = a.config.model
  return nn.module({
    attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = a.layer }),
    mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    mlp = nn.mlp(m.activation, m.dim, a.hidden_dim),
    forward = function(self, x, ctx)
      local h = x + self.attention(self.attention_norm(x), ctx)
      return h + self.mlp(self.mlp_norm(h))
    end,
  })
end)

--- The whole block from linear layers: attention with grouped queries, RoPE and a mask by hand.
kf.register.block("lua_llama_whole", function(a)
  local m = a.config.model
  local d = m.dim / m.n_heads
  local function group(fields)
    fields.forward = function() end
    return nn.module(fields)
  end
  local rope = nn.rope(d)
  local function heads(t)
    return t:view(t:size(0), t:size(1), -1, d):transpose(1, 2)
  end
  return nn.module({
    attention_norm = nn.rmsnorm(m.dim, m.norm_eps),
    attention = group({
      q_proj = nn.linear(m.dim, m.n_heads * d),
      k_proj = nn.linear(m.dim, m.n_kv_heads * d),
      v_proj = nn.linear(m.dim, m.n_kv_heads * d),
      o_proj = nn.linear(m.n_heads * d, m.dim, { init = "output" }),
    }),
    mlp_norm = nn.rmsnorm(m.dim, m.norm_eps),
    mlp = group({
      gate_proj = nn.linear(m.dim, a.hidden_dim),
      up_proj = nn.linear(m.dim, a.hidden_dim),
      down_proj = nn.linear(a.hidden_dim, m.dim, { init = "output" }),
    }),
    forward = function(self, x)
      local at, ff, times = self.attention, self.mlp, m.n_heads / m.n_kv_heads
      local h = self.attention_norm(x)
      local q, k, v = rope(heads(at.q_proj(h))), rope(heads(at.k_proj(h))), heads(at.v_proj(h))
      k, v = k:repeat_interleave(times, 1), v:repeat_interleave(times, 1)
      local mixed = kf.op.scaled_dot_product_attention(q, k, v, { is_causal = true })
      x = x + at.o_proj(mixed:transpose(1, 2):flatten(2))
      h = self.mlp_norm(x)
      return x + ff.down_proj(kf.op.silu(ff.gate_proj(h)) * ff.up_proj(h))
    end,
  })
end)

kf.register.mlp("lua_swiglu", function(a)
  return nn.module({
    gate_proj = nn.linear(a.dim, a.hidden_dim),
    up_proj = nn.linear(a.dim, a.hidden_dim),
    down_proj = nn.linear(a.hidden_dim, a.dim, { init = "output" }),
    forward = function(self, x)
      x = x:alias() -- gradients are added up here, as in the native layer: that keeps the last bit
      return self.down_proj(kf.op.silu(self.gate_proj(x)) * self.up_proj(x))
    end,
  })
end)

kf.register.norm("lua_rmsnorm", function(a)
  return nn.module({
    weight = nn.parameter({ a.dim }, { init = "ones" }),
    forward = function(self, x)
      local wide = x:alias():float()
      return (wide * (wide:square():mean(-1, true) + a.eps):rsqrt() * self.weight):to(x.dtype)
    end,
  })
end)

kf.register.loss("lua_cross_entropy", function()
  return function(logits, labels, batch)
    T.eq(batch.labels:flatten(), labels)
    local sum = kf.op.cross_entropy_loss(logits:float(), labels, { reduction = 2, ignore_index = -100 })
    return sum, labels:ne(-100):sum()
  end
end)

kf.register.optimizer("lua_adamw", function(a)
  local o = a.config.optimizer
  local b1, b2 = o.betas[1], o.betas[2]
  return {
    state = { "exp_avg", "exp_avg_sq" },
    step = function(g)
      local m, v = g.state.exp_avg, g.state.exp_avg_sq
      kf.op._foreach_mul_(g.params, 1 - g.lr * g.weight_decay)
      kf.op._foreach_lerp_(m, g.grads, 1 - b1)
      kf.op._foreach_mul_(v, b2)
      kf.op._foreach_addcmul_(v, g.grads, g.grads, 1 - b2)
      local denom = kf.op._foreach_sqrt(v)
      kf.op._foreach_div_(denom, math.sqrt(1 - b2 ^ g.step))
      kf.op._foreach_add_(denom, o.eps)
      kf.op._foreach_addcdiv_(g.params, m, denom, -g.lr / (1 - b1 ^ g.step))
    end,
  }
end)

--- Sophia as the engine has it (optimizer.sophia_h), but for its weight decay, which is 0 here: the same operators in the same order, so
--- that every processor rounds both alike. (A quotient that is cut to -1 or 1 lets no bound be derived: where it crosses 0 the last bit
--- decides.)
kf.register.optimizer("lua_sophia", function(a)
  local o = a.config.optimizer
  return {
    state = { "exp_avg", "hessian" },
    curvature_every = a.options.every,
    step = function(g)
      T.eq(g.curvature ~= nil, (g.step - 1) % a.options.every == 0)
      if g.curvature then
        kf.op._foreach_lerp_(g.state.hessian, g.curvature, 1 - o.betas[2])
      end
      kf.op._foreach_lerp_(g.state.exp_avg, g.grads, 1 - o.betas[1])
      for i, p in ipairs(g.params) do
        local scale = (g.state.hessian[i] * 0.01):clamp_min(o.eps)
        p:sub_((g.state.exp_avg[i] / scale):clamp(-1, 1), { alpha = g.lr })
      end
    end,
  }
end, { fields = { { "every", "int", default = 2, min = 1 } } })

--- A small folder of text below the working folder.
local function write_text()
  os.execute("mkdir -p text")
  local file = assert(io.open("text/lines.txt", "w"))
  for i = 1, 400 do
    file:write(("line %d says that %d is not %d\n"):format(i, i * 7 % 31, i * 3 % 17))
  end
  file:close()
end
write_text()

local runs = 0

--- A toy run with `changes` by section; returns its result and its weights.
local function train(changes)
  runs = runs + 1
  local job = {
    run = { name = "run-" .. runs },
    model = { dim = 32, n_layers = 2, n_heads = 4, n_kv_heads = 2, vocab_size = 320, max_seq_len = 32 },
    train = { batch_size = 4, seq_len = 32, max_steps = 5, mixed_precision = "fp32" },
    optimizer = { lr = 1e-2 },
    scheduler = { warmup_steps = 2 },
    data = { dataset_path = "text", file_pattern = "*" },
    metrics = { log_interval = 1 },
    checkpoint = { interval = 1000 },
  }
  for section, keys in pairs(changes or {}) do
    job[section] = job[section] or {}
    for key, value in pairs(keys) do
      job[section][key] = value
    end
  end
  local result = kf.run(job)
  return result, kf.safetensors.load(result.checkpoint .. "/model.safetensors")
end

local function losses(result)
  local out = {}
  for _, row in ipairs(result.history) do
    out[#out + 1] = row.loss
  end
  return out
end

--- Two runs end with the same bits.
local function same(changes, native_changes)
  local native, native_weights = train(native_changes)
  local lua, lua_weights = train(changes)
  T.eq(losses(lua), losses(native))
  for name, tensor in pairs(native_weights) do
    T.ok(lua_weights[name], name .. " in the checkpoint")
    T.ok(tensor:equal(lua_weights[name]), name .. " is the same")
  end
end

T.test("block: the Llama block in Lua equals the native one to the last bit", function()
  same({ model = { block = "lua_llama" } })
end)

T.test("block: the same, written from linear layers, but for rounding", function()
  local native, lua = losses((train())), losses((train({ model = { block = "lua_llama_whole" } })))
  for step, loss in ipairs(native) do
    -- Ten products of at most 256 numbers a step, five steps at a rate that moves weights by 1e-2: 1e-5 of the loss.
    T.ok(math.abs(lua[step] - loss) < 1e-5 * loss, ("step %d: %.7f and %.7f"):format(step, lua[step], loss))
  end
end)

T.test("mlp, norm, loss: twins equal to the last bit", function()
  -- compile_model = false: the native norm by the plain operators that the one in Lua is written with.
  local plain = { compile_model = false }
  same(
    { model = { activation = "lua_swiglu", norm_type = "lua_rmsnorm" }, train = { loss_fn = "lua_cross_entropy", compile_model = false } },
    { train = plain }
  )
end)

T.test("mlp: under bf16 and gradient accumulation", function()
  local setting = { mixed_precision = "bf16", grad_accum_steps = 2, batch_size = 2, compile_model = false }
  same({ model = { activation = "lua_swiglu", norm_type = "lua_rmsnorm" }, train = setting }, { train = setting })
end)

T.test("block: under full activation checkpointing", function()
  local setting = { activation_checkpointing = "full", compile_model = false }
  same({ model = { block = "lua_llama", activation = "lua_swiglu" }, train = setting }, { train = setting })
end)

T.test("block: what a recomputed layer draws is drawn again alike", function()
  kf.register.mlp("lua_noisy", function(a)
    return nn.module({
      up = nn.linear(a.dim, a.hidden_dim),
      down = nn.linear(a.hidden_dim, a.dim, { init = "output" }),
      forward = function(self, x)
        return self.down(nn.functional.dropout(self.up(x):tanh(), 0.3) * (1 + 0.1 * kf.rand_like(self.up(x))))
      end,
    })
  end)
  local model = { activation = "lua_noisy" }
  local recomputed = { activation_checkpointing = "full", grad_accum_steps = 2 }
  same({ model = model, train = recomputed }, { model = model, train = { grad_accum_steps = 2 } })
end)

T.test("optimizer: AdamW in Lua equals the native one to 1e-6 over 20 steps", function()
  -- At the optimizer's default rate: a larger one amplifies the last bits, which differ between vector units.
  local setting = { max_steps = 20 }
  local _, native = train({ train = setting, optimizer = { lr = 3e-4 } })
  local _, lua = train({ train = setting, optimizer = { name = "lua_adamw", lr = 3e-4 } })
  for name, tensor in pairs(native) do
    local worst = (tensor - lua[name]):abs():max():item()
    T.ok(worst < 1e-6, ("%s differs by %g"):format(name, worst))
  end
end)

T.test("optimizer: its state is in checkpoints, and a run goes on from there to the same end", function()
  local setting = { name = "lua_adamw" }
  local _, whole = train({ train = { max_steps = 8 }, optimizer = setting, scheduler = { name = "constant" } })
  local first = train({ train = { max_steps = 4 }, optimizer = setting, scheduler = { name = "constant" } })
  local state = kf.safetensors.load(first.checkpoint .. "/optimizer.safetensors")
  T.ok(state["exp_avg.norm.weight"] and state["exp_avg_sq.norm.weight"], "the moments in the checkpoint")
  runs = runs - 1
  local _, resumed = train({ train = { max_steps = 8 }, optimizer = setting, scheduler = { name = "constant" } })
  for name, tensor in pairs(whole) do
    T.ok(tensor:equal(resumed[name]), name .. " is the same")
  end
end)

T.test("optimizer: Sophia in Lua, which asks for the curvature, equals the native one", function()
  local function changes(name, options)
    return { optimizer = { name = name, lr = 1e-3, weight_decay = 0, betas = { 0.9, 0.95 }, [name] = options } }
  end
  local _, native = train(changes("sophia_h", { update_interval = 2 }))
  local _, lua = train(changes("lua_sophia", { every = 2 }))
  for name, tensor in pairs(native) do
    T.ok(tensor:equal(lua[name]), name)
  end
  local _, first = train(changes("lua_sophia", { every = 9 }))
  T.ok(not first["layers.0.mlp.up_proj.weight"]:equal(lua["layers.0.mlp.up_proj.weight"]), "the second estimate counts")
end)

T.test("optimizer: curvature_every is a whole number", function()
  kf.register.optimizer("half_bent", function()
    return { curvature_every = 0.5, step = function() end }
  end)
  T.raises(function()
    train({ optimizer = { name = "half_bent" } })
  end, "curvature_every must be a whole number of updates, at least 1, got number 0.5")
end)

T.test("optimizer: its tensors are lent", function()
  local kept
  kf.register.optimizer("keeper", function()
    return {
      step = function(g)
        kept = kept or g.params[1]
      end,
    }
  end)
  train({ optimizer = { name = "keeper" } })
  T.raises(function()
    return kept + 1
  end, "was lent with the parameters, gradients and states of update 1")
end)

kf.register.norm("wrong_shape", function(a)
  return nn.module({
    weight = nn.parameter({ a.dim }),
    forward = function(_, x)
      return x:sum(-1)
    end,
  })
end)

kf.register.mlp("failing", function()
  return nn.module({
    forward = function()
      error("this mlp fails")
    end,
  })
end)

T.test("errors: a wrong result and an error in forward name the part and the line", function()
  T.raises(function()
    train({ model = { norm_type = "wrong_shape" } })
  end, "norm 'wrong_shape': forward must return the shape of its input")
  local message = T.raises(function()
    train({ model = { activation = "failing" } })
  end, "this mlp fails")
  T.ok(message:find("training_spec.lua:%d+: this mlp fails"), message)
end)

T.test("load_model: the model of a checkpoint generates and evaluates outside of runs", function()
  local text = os.tmpname() .. ".txt"
  local file = assert(io.open(text, "w"))
  file:write(("some text to learn from; "):rep(40))
  file:close()
  local result = train({
    model = { vocab_size = 257 },
    data = { dataset_path = text },
    eval = { enabled = true, interval = 4, steps = 2, dataset_path = text },
  })
  local model = kf.load_model(result.checkpoint)
  T.near(model:evaluate().loss, result.eval.loss)
  T.near(model:evaluate({ dataset_path = text, steps = 2 }).loss, result.eval.loss)
  T.ok(model:evaluate(text).tokens > result.eval.tokens, "a path is read to its end")
  local held_out = train({ -- a set of its own that has no path
    model = { vocab_size = 257 },
    data = { dataset_path = text, holdout = 0.3 },
    eval = { enabled = true, interval = 4, steps = 1 },
    run = { name = "held_out" },
  })
  T.near(kf.load_model(held_out.checkpoint):evaluate({ steps = 1 }).loss, held_out.eval.loss)
  local answer, info = model:generate("so", { max_new_tokens = 3, temperature = 0 })
  T.eq(#info.ids, 3)
  T.ok(type(answer) == "string")
  T.eq(#model:generate({ "a", "b" }, { max_new_tokens = 1 }), 2)
  T.raises(function()
    model:generate("so", { max_tokens = 3 })
  end, "model:generate: no option 'max_tokens'")
  T.raises(function()
    model:generate("so", { max_new_tokens = 100000 })
  end, "training_spec.lua")
  T.raises(function()
    model:generate("so", { max_new_tokens = 100000 })
  end, "model:generate: max_new_tokens (100000) and")
  for _, wrong in ipairs({
    { { stepz = 3 }, "model:evaluate: [eval] has no key 'stepz'; did you mean 'steps'?" },
    { { dataset_path = { "a", "b" } }, "model:evaluate: eval.dataset_path (['a', 'b']) is not a string" },
    { { steps = 1.5 }, "eval.steps (1.5) is not an integer" },
  }) do
    T.raises(function()
      model:evaluate(wrong[1])
    end, wrong[2])
  end
  T.raises(function()
    kf.load_model("no/such/folder")
  end, "no/such/folder does not exist")
  os.remove(text)
end)

T.test("errors: the name of a part that is built in", function()
  T.raises(function()
    kf.register.optimizer("adamw", print)
  end, "optimizer 'adamw' is built in; give yours another name")
end)

T.test("errors: an optimizer that replaces a tensor, a loss without a gradient, freezing all", function()
  kf.register.optimizer("replacer", function()
    return {
      step = function(g)
        g.params[1] = g.params[1] - g.lr * g.grads[1]
      end,
    }
  end)
  T.raises(function()
    train({ optimizer = { name = "replacer" } })
  end, "optimizer 'replacer': g.params[1] was replaced, which changes nothing; write into it")
  kf.register.optimizer("slot_replacer", function()
    return {
      state = { "m" },
      step = function(g)
        g.state.m[2] = g.state.m[2] + g.grads[2]
      end,
    }
  end)
  T.raises(function()
    train({ optimizer = { name = "slot_replacer" } })
  end, "optimizer 'slot_replacer': g.state.m[2] was replaced")
  kf.register.loss("detached", function()
    return function(logits, labels)
      return logits:detach():sum(), labels:numel()
    end
  end)
  T.raises(function()
    train({ train = { loss_fn = "detached" } })
  end, "loss 'detached' must return a sum that depends on the logits")
  local function freezing(...)
    local patterns = { ... }
    return {
      hooks = {
        {
          on_train_begin = function(ctx)
            ctx:freeze("*")
            for _, pattern in ipairs(patterns) do
              ctx:unfreeze(pattern)
            end
          end,
        },
      },
    }
  end
  local message = T.raises(function()
    train(freezing())
  end, 'ctx:freeze("*"): every weight would be frozen')
  T.ok(message:find("training_spec.lua:%d+: ctx:freeze"), message)
  T.eq(train(freezing("layers.*")).status, "complete")
end)

T.test("a loss in Lua: what backward does not need is gone before it", function()
  local held = setmetatable({}, { __mode = "v" })
  local alive = {}
  kf.register.loss("watched", function()
    return function(logits, labels)
      local logp = logits:log_softmax(-1)
      held.logits = logits
      logp:register_hook(function()
        alive[#alive + 1] = held.logits ~= nil
      end)
      return -logp:gather(1, labels:clamp_min(0):unsqueeze(1)):sum(), labels:numel()
    end
  end)
  train({ train = { loss_fn = "watched", batch_size = 16, seq_len = 32, max_steps = 1 }, model = { dim = 8, vocab_size = 40000 } })
  T.eq(alive, { false }) -- 80 MB that the collector had not yet looked at
end)

T.test("under bf16 a layer in Lua may let its fp32 vector widen the result", function()
  kf.register.norm("widening", function(a)
    return nn.module({
      weight = nn.parameter({ a.dim }, { init = "ones" }),
      forward = function(self, x)
        local y = x:float()
        y = y * (y:square():mean(-1, true) + a.eps):rsqrt()
        return y:to(x.dtype) * self.weight
      end,
    })
  end)
  T.eq(train({ model = { norm_type = "widening" }, train = { mixed_precision = "bf16" } }).status, "complete")
end)

T.test("errors: a job that is run by pcall has the places of its own keys, not of others in the file", function()
  local line = debug.getinfo(1, "l").currentline + 1
  local _, message = pcall(kf.run, { optimizer = { lr = "fast" } })
  T.ok(message:find(("training_spec.lua:%d:"):format(line), 1, true), message)
end)
