--- Routers in Lua, and the mixture-of-experts layer as a module: twins of the native ones, compared by their checkpoints.
local kf = require("kf")
local nn = kf.nn
local T = require("kf.test")

--- softmax_topk, line by line.
kf.register.router("lua_softmax_topk", function(a)
  return nn.module({
    gate = nn.linear(a.dim, a.num_experts, { role = "router" }),
    forward = function(self, x)
      local logits = self.gate(x):float()
      local scores = logits:softmax(-1)
      local _, chosen = scores:detach():topk(a.top_k, -1)
      local weights = scores:gather(1, chosen)
      weights = weights / (weights:sum(-1, true) + 1e-20)
      local share = kf.op.bincount(chosen:flatten(), { minlength = a.num_experts }):float() / chosen:numel()
      return weights, chosen, {
        balance = (share * scores:mean(0)):sum() * a.num_experts,
        z = logits:logsumexp(-1):square():mean(),
      }
    end,
  })
end)

--- A sigmoid router whose selection bias is moved by its own `rebalance`, as moe_bias_rule = "sign" does.
kf.register.router("lua_sign", function(a)
  return nn.module({
    gate = nn.linear(a.dim, a.num_experts, { role = "router" }),
    bias = nn.buffer(kf.zeros({ a.num_experts })),
    forward = function(self, x)
      local scores = self.gate(x):float():sigmoid()
      local _, chosen = (scores:detach() + self.bias):topk(a.top_k, -1)
      local weights = scores:gather(1, chosen)
      return weights / (weights:sum(-1, true) + 1e-20), chosen
    end,
    rebalance = function(self, counts)
      local load = counts:float()
      self.bias:add_((load:mean() - load):sign(), { alpha = a.options.rate })
    end,
  })
end, { fields = { { "rate", "float", default = 0.01, min = 0 } } })

--- A block whose feed-forward layer is nn.moe.
kf.register.block("lua_moe_block", function(a)
  local m = a.config.model
  return nn.module({
    attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = a.layer }),
    mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    mlp = nn.moe(m, { layer = a.layer }),
    forward = function(self, x, ctx)
      local h = x + self.attention(self.attention_norm(x), ctx)
      return h + self.mlp(self.mlp_norm(h))
    end,
  })
end)

--- The same layer as an mlp: a job without experts gets them through model.activation.
kf.register.mlp("lua_experts", function(a)
  return nn.module({
    moe = nn.moe(a.config.model, { activation = "silu", num_experts = 4, moe_ffn_dim = 32, moe_router_z_loss_weight = 1e-3 }),
    forward = function(self, x)
      return self.moe(x)
    end,
  })
end)

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
    -- What is written with kf.op takes LibTorch's products, and its twin shall, too.
    train = { batch_size = 4, seq_len = 32, max_steps = 5, mixed_precision = "fp32", cpu_products = "plain" },
    optimizer = { lr = 1e-2 },
    scheduler = { warmup_steps = 2 },
    data = { dataset_path = "text", file_pattern = "*" },
    metrics = { log_interval = 1 },
    checkpoint = { interval = 1000 },
  }
  for section, keys in pairs(changes) do
    for key, value in pairs(keys) do
      job[section][key] = value
    end
  end
  local result = kf.run(job)
  return result, kf.safetensors.load(result.checkpoint .. "/model.safetensors")
end

local function experts(changes)
  local model = { num_experts = 4, moe_top_k = 2, moe_ffn_dim = 32, moe_router_z_loss_weight = 1e-3 }
  for key, value in pairs(changes or {}) do
    model[key] = value
  end
  return model
end

--- Two runs end with the same bits, and logged the same losses of the experts.
local function same(model, native_model, settings)
  local native, native_weights = train({ model = experts(native_model), train = settings or {} })
  local lua, lua_weights = train({ model = experts(model), train = settings or {} })
  for i, row in ipairs(native.history) do
    for _, key in ipairs({ "loss", "aux_loss", "moe/aux_loss", "moe/router_z_loss", "moe/expert_balance" }) do
      T.eq(lua.history[i][key], row[key])
    end
  end
  T.ok(native.history[1]["moe/aux_loss"], "the run has experts")
  for name, tensor in pairs(native_weights) do
    T.ok(lua_weights[name], name .. " in the checkpoint")
    T.ok(tensor:equal(lua_weights[name]), name .. " is the same")
  end
end

T.test("router: softmax top-k in Lua equals the native one to the last bit", function()
  same({ moe_router = "lua_softmax_topk" })
end)

T.test("router: the same under bf16, gradient accumulation and recomputation", function()
  local setting = { mixed_precision = "bf16", grad_accum_steps = 2, batch_size = 2 }
  same({ moe_router = "lua_softmax_topk" }, {}, setting)
  setting.activation_checkpointing = "full"
  same({ moe_router = "lua_softmax_topk" }, {}, setting)
end)

T.test("moe: a block in Lua around nn.moe equals the native one, recomputed or not", function()
  same({ block = "lua_moe_block" })
  same({ block = "lua_moe_block", moe_router = "lua_softmax_topk" }, {}, { activation_checkpointing = "full", grad_accum_steps = 2 })
end)

T.test("moe: as an mlp of a job without experts, with its losses and their recomputation", function()
  local _, plain = train({ model = { activation = "lua_experts" } })
  local result, again = train({ model = { activation = "lua_experts" }, train = { activation_checkpointing = "full" } })
  T.ok(result.history[1]["moe/aux_loss"] > 0.9 and result.history[1].aux_loss > 0, "the losses of the experts are counted")
  for name, tensor in pairs(plain) do
    T.ok(tensor:equal(again[name]), name .. " is the same")
  end
end)

--- The native transformer as a model in Lua, experts included.
kf.register.model("lua_transformer", function(a)
  local m = a.config.model
  local layers = {}
  for i = 1, m.n_layers do
    layers[i] = nn.module({
      attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
      attention = nn.attention(m, { layer = i - 1 }),
      mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
      mlp = nn.moe(m, { layer = i - 1 }),
      forward = function(self, x, ctx)
        local h = x + self.attention(self.attention_norm(x), ctx)
        return h + self.mlp(self.mlp_norm(h))
      end,
    })
  end
  local function group(fields)
    fields.forward = function() end
    return nn.module(fields)
  end
  return nn.module({
    token_embedding = group({ embedding = nn.embedding(m.vocab_size, m.dim) }),
    layers = nn.list(layers),
    norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    output_head = group({ proj = nn.linear(m.dim, m.vocab_size, { role = "head" }) }),
    forward = function(self, tokens, ctx)
      local h = self.token_embedding.embedding(tokens)
      for _, layer in ipairs(self.layers) do
        h = a.config.train.activation_checkpointing == "full" and nn.recompute(layer, h, ctx) or layer(h, ctx)
      end
      return self.output_head.proj(self.norm(h))
    end,
  })
end)

T.test("model: a transformer with experts in Lua equals the native one, recomputed by nn.recompute or not", function()
  same({ model_type = "lua_transformer" })
  same({ model_type = "lua_transformer" }, {}, { activation_checkpointing = "full", grad_accum_steps = 2 })
end)

T.test("router: rebalance moves the selection bias as the native rule does, once an update", function()
  local model = { moe_router = "sigmoid", moe_bias_rule = "sign", moe_bias_rate = 0.01, moe_router_z_loss_weight = 0 }
  local setting = { grad_accum_steps = 2, activation_checkpointing = "full" }
  local _, native = train({ model = experts(model), train = setting })
  local twin = { moe_router = "lua_sign", moe_router_z_loss_weight = 0 }
  local _, lua = train({ model = experts(twin), train = setting })
  for layer = 0, 1 do
    local prefix = ("layers.%d.mlp.router."):format(layer)
    T.ok(lua[prefix .. "bias"]:abs():sum():item() > 0, "the bias is in the checkpoint, moved")
    T.ok(lua[prefix .. "gate.weight"]:equal(native[prefix .. "gate.weight"]), "the gates are the same")
  end
end)

kf.register.router("answers", function(a)
  local answers = {
    none = function() end,
    narrow = function(x)
      return kf.ones({ x:size(0), 1 }), kf.zeros({ x:size(0), 1 }, { dtype = "int64" })
    end,
    float = function(x)
      return kf.ones({ x:size(0), 2 }), kf.zeros({ x:size(0), 2 })
    end,
    outside = function(x)
      return kf.ones({ x:size(0), 2 }), kf.full({ x:size(0), 2 }, 4, { dtype = "int64" })
    end,
    loss = function(x)
      return kf.ones({ x:size(0), 2 }), kf.zeros({ x:size(0), 2 }, { dtype = "int64" }), { balance = 1 }
    end,
    failing = function()
      error("this router fails")
    end,
  }
  return answers[a.options.answer]
end, { fields = { { "answer", "string", default = "none" } } })

T.test("router: wrong results name the router and what is wanted", function()
  local wanted = {
    none = "router 'answers': forward must return weights, indices [, losses]; weights is nil",
    narrow = "weights must be (128, 2) for 128 tokens and model.moe_top_k = 2, got float32 (128, 1)",
    float = "indices must be int64, got float32 (128, 2)",
    outside = "indices must be from 0 to 3 (model.num_experts - 1), got 4 to 4",
    loss = "the loss 'balance' must be a tensor without dims (a sum or a mean), got number 1",
    failing = "router_spec.lua:%d+: this router fails",
  }
  for answer, words in pairs(wanted) do
    local model = experts({ moe_router = "answers" })
    local ok, message = pcall(kf.run, {
      run = { name = "wrong-" .. answer },
      model = { dim = 32, n_layers = 2, n_heads = 4, vocab_size = 320, max_seq_len = 32, moe_router = model.moe_router, num_experts = 4 },
      router = { answers = { answer = answer } },
      train = { batch_size = 4, seq_len = 32, max_steps = 1, mixed_precision = "fp32" },
      data = { dataset_path = "text", file_pattern = "*" },
    })
    T.ok(not ok and (message:find(words, 1, true) or message:find(words)), tostring(message))
  end
end)

T.test("moe: its options are checked like the keys of a job", function()
  local settings = { dim = 8, n_heads = 2, n_layers = 1 }
  T.raises(function()
    nn.moe(settings)
  end, "nn.moe: num_experts must be above 0")
  T.raises(function()
    nn.moe(settings, { num_experts = 2, moe_top_k = 3 })
  end, "nn.moe: model.moe_top_k (3) must be <= model.num_experts (2)")
  T.raises(function()
    nn.moe(settings, { num_expert = 2 })
  end, "nn.moe: [model] has no key 'num_expert'; did you mean 'num_experts'?")
  local moe = nn.moe(settings, { num_experts = 4, moe_shared_experts = 1 })
  T.eq(moe(kf.randn({ 2, 3, 8 })).shape, { 2, 3, 8 })
end)
