--- Modules outside of a run: composition, names, modes, initialisers, errors.
local kf = require("kf")
local nn = kf.nn
local T = require("kf.test")

local function keys(t)
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function two_layers()
  return nn.module({
    up = nn.linear(4, 8, { bias = true }),
    down = nn.linear(8, 4, { init = "zeros" }),
    scale = nn.parameter({ 4 }),
    forward = function(self, x)
      return self.down(self.up(x):tanh()) * self.scale + x
    end,
  })
end

T.test("modules: fields become children and parameters by their names", function()
  local m = two_layers():materialize({ seed = 3 })
  T.eq(keys(m:parameters()), { "down.weight", "scale", "up.bias", "up.weight" })
  T.eq(m:num_parameters(), 32 + 8 + 32 + 4)
  T.eq(m.scale.shape, { 4 })
  local x = kf.randn({ 2, 4 })
  T.eq(m(x), x)
  T.eq(m.up.weight.shape, { 8, 4 })
end)

T.test("modules: weights depend on seed and name alone", function()
  local a, b = two_layers():materialize({ seed = 3 }), two_layers():materialize({ seed = 3 })
  T.eq(a.up.weight, b.up.weight)
  T.ok(not a.up.weight:equal(two_layers():materialize({ seed = 4 }).up.weight), "another seed")
end)

T.test("modules: a free-standing one draws its weights when it is first called", function()
  local m = nn.linear(3, 2)
  T.raises(function()
    return m.weight, 1
  end, "has no values yet")
  T.eq(m(kf.ones({ 5, 3 })).shape, { 5, 2 })
  T.eq(m.weight.shape, { 2, 3 })
end)

T.test("modules: gradients reach every weight", function()
  local m = two_layers():materialize()
  kf.no_grad(function()
    m.down.weight:fill_(0.5)
  end)
  m(kf.randn({ 2, 4 })):pow(2):sum():backward()
  for name, parameter in pairs(m:parameters()) do
    T.ok(parameter.grad and parameter.grad:abs():sum():item() > 0, "the gradient of " .. name)
  end
end)

T.test("modules: training and evaluation, for the whole tree", function()
  local m = nn.module({
    drop = nn.dropout(0.5),
    inner = nn.module({
      forward = function(self)
        return self.training
      end,
    }),
    forward = function(self, x)
      return self.drop(x), self.inner(x)
    end,
  })
  local x = kf.ones({ 1000 })
  local y, training = m(x)
  T.ok(training and y:eq(0):sum():item() > 300, "dropout while training")
  y, training = m:eval()(x)
  T.ok(not training and y:equal(x), "no dropout in evaluation")
end)

T.test("lists and sequences: plain tables, children counted from 0", function()
  local m = nn.module({
    layers = nn.list({ nn.linear(2, 2), nn.linear(2, 2) }),
    head = nn.sequential(nn.linear(2, 3), kf.op.relu, nn.rmsnorm(3)),
    forward = function(self, x)
      for _, layer in ipairs(self.layers) do
        x = layer(x)
      end
      return self.head(x)
    end,
  })
  T.eq(#m.layers, 2)
  T.eq(m(kf.ones({ 1, 2 })).shape, { 1, 3 })
  T.eq(keys(m:parameters()), { "head.0.weight", "head.2.weight", "layers.0.weight", "layers.1.weight" })
end)

T.test("layers: norms, embeddings, rope and attention", function()
  local x = kf.randn({ 2, 5, 8 })
  local normed = nn.rmsnorm(8, 1e-6)(x)
  T.near(normed:pow(2):mean(-1):tolist(), kf.ones({ 2, 5 }):tolist(), 1e-4)
  T.near(nn.layernorm(8)(x):mean(-1):abs():max():item(), 0, 1e-5)
  T.eq(nn.norm("rmsnorm", 8, 1e-6)(x), normed)
  T.eq(nn.embedding(10, 4)(kf.tensor({ 1, 9 }, { dtype = "int64" })).shape, { 2, 4 })
  local q = kf.randn({ 1, 2, 3, 4 })
  T.near(nn.rope(4)(q):pow(2):sum():item(), q:pow(2):sum():item(), 1e-5)
  local settings = { dim = 8, n_heads = 4, n_kv_heads = 2, n_layers = 1, max_seq_len = 16 }
  T.eq(nn.attention(settings)(x).shape, { 2, 5, 8 })
  local windowed = nn.attention(settings, { layer_pattern = { "local" }, window = 1 })
  T.eq(windowed(x).shape, { 2, 5, 8 })
  local mlp = nn.mlp("silu", 8, 16)
  T.eq(mlp(x).shape, { 2, 5, 8 })
  T.raises(function()
    return mlp.gate_proj, 1
  end, "its part 'gate_proj' cannot be had alone; m:parameters() is a table of all weights")
end)

T.test("buffers and given values", function()
  local m = nn.module({
    mask = nn.buffer(kf.tensor({ 1, 0, 1 })),
    weight = nn.parameter(kf.tensor({ 2, 3, 4 })),
    forward = function(self, x)
      return x * self.mask * self.weight
    end,
  }):materialize()
  T.eq(m(kf.ones({ 3 })):tolist(), { 2, 0, 4 })
  T.eq({ m.mask.requires_grad, m.weight.requires_grad }, { false, true })
end)

T.test("errors: what is wrong with a module is said where it is made", function()
  T.raises(function()
    nn.module({ up = nn.linear(2, 2) })
  end, "forward must be a function, got nil")
  T.raises(function()
    nn.linear(2)
  end, "expected the width of its output (a whole number above 0), got nothing")
  T.raises(function()
    nn.linear(2, 2, { biass = true })
  end, "did you mean 'bias'?")
  T.raises(function()
    nn.attention({ dim = 8, n_head = 2 })
  end, "did you mean 'n_heads'?")
  T.raises(function()
    two_layers().extra = nn.linear(2, 2)
  end, "not added later")
  T.raises(function()
    nn.linear(3, 2)(kf.ones({ 2 }))
  end, "nn.linear: ")
  T.raises(function()
    nn.parameter({ 2 }, { init = "normall" })
  end, "did you mean 'normal'?")
end)

T.test("shard: hints are declared, checked and shown", function()
  T.ok(tostring(nn.linear(4, 8, { shard = "colwise", bias = true })):find("weight (8, 4) colwise, bias (8) colwise", 1, true))
  T.ok(tostring(nn.linear(4, 8, { shard = "rowwise", bias = true })):find("weight (8, 4) rowwise, bias (8) sequence", 1, true))
  T.ok(tostring(nn.embedding(4, 8, { shard = "colwise" })):find("weight (4, 8) colwise", 1, true))
  T.ok(tostring(nn.rmsnorm(8, { shard = "sequence" })):find("weight (8) sequence", 1, true))
  T.raises(function()
    nn.linear(2, 2, { shard = "columns" })
  end, "no shard 'columns'; have: colwise, rowwise, sequence, replicate")
  T.raises(function()
    nn.parameter({ 2 }, { shard = "rowwise" })
  end, "splits the inputs of a matrix, and this is a vector")
end)

T.test("module: a tensor that wants gradients must be a parameter", function()
  T.raises(function()
    nn.module({ w = kf.ones({ 2 }, { requires_grad = true }), forward = function() end })
  end, "nn.parameter(t) makes a weight of it")
end)
