--- Operators by reflection: overloads, keywords, results, errors.
local kf = require("kf")
local T = require("kf.test")
local op = kf.op

T.test("operators: nearly every aten schema can be called", function()
  local missing, all = op.missing()
  T.ok(all > 3000, "the number of schemas")
  T.ok(#missing / all <= 0.02, ("the share of missing schemas, %d of %d"):format(#missing, all))
  for _, entry in ipairs(missing) do
    T.ok(entry.name and entry.reason, "name and reason of a missing schema")
  end
end)

T.test("operators: keywords, positions and defaults mean the same", function()
  local x = kf.arange(6, { dtype = "float32" }):view(2, 3)
  T.eq(x:sum({ dim = 1 }):tolist(), { 3, 12 })
  T.eq(x:sum(1):tolist(), { 3, 12 })
  T.eq(x:sum({ 1 }, true).shape, { 2, 1 })
  T.eq(x:sum(1, { keepdim = true }).shape, { 2, 1 })
  T.eq(op.sum(x, { 0, 1 }):item(), 15)
  T.eq(x:sum({ dtype = "float64" }).dtype, "float64")
end)

T.test("operators: a list of integers at the end may be spread", function()
  local x = kf.zeros(2, 3, 4)
  T.eq(x.shape, { 2, 3, 4 })
  T.eq(x:permute(2, 0, 1).shape, { 4, 2, 3 })
  T.eq(x:reshape(-1).shape, { 24 })
  T.eq(x:view(6, 4).shape, { 6, 4 })
  T.eq(kf.ones({ 1, 3 }):expand(5, 3).shape, { 5, 3 })
  T.eq(x:transpose(0, 2).shape, { 4, 3, 2 })
  T.eq(kf.arange(4):roll(1, 0):tolist(), { 3, 0, 1, 2 })
end)

T.test("operators: overloads are chosen by type", function()
  local x = kf.tensor({ 1, 4, 2 })
  local values, indices = x:max(0)
  T.eq({ values:item(), indices:item() }, { 4, 1 })
  T.eq(x:max():item(), 4)
  T.eq(op.max(x, kf.tensor({ 3, 3, 3 })):tolist(), { 3, 4, 3 })
  T.eq(op.pow(2, x):tolist(), { 2, 16, 4 })
  T.eq(x:clamp(nil, 2):tolist(), { 1, 2, 2 })
  T.eq(x:clamp_min(2):tolist(), { 2, 4, 2 })
  T.eq(op.where(x:gt(1), x, 0):tolist(), { 0, 4, 2 })
  T.eq(x:where(x:gt(1), 0):tolist(), { 0, 4, 2 })
  T.eq(op["add.Scalar"](x, 1):tolist(), { 2, 5, 3 })
  T.eq(op["add.Tensor"](x, x, { alpha = 2 }):tolist(), { 3, 12, 6 })
end)

T.test("operators: integral numbers are integers, kf.float makes floats", function()
  local x = kf.arange(3)
  T.eq((x * 2).dtype, "int64")
  T.eq((x * 2.5).dtype, "float32")
  T.eq((x * kf.float(2)).dtype, "float32")
  T.eq(op.add(x, kf.float(1)).dtype, "float32")
  T.eq(kf.full({ 2 }, 3).dtype, "int64")
  T.eq(kf.full({ 2 }, kf.float(3)).dtype, "float32")
  T.eq(kf.full({ 2 }, true).dtype, "bool")
  T.eq(kf.arange(3).dtype, "int64")
  T.eq(kf.arange(0, 1, 0.25):tolist(), { 0, 0.25, 0.5, 0.75 })
end)

T.test("operators: lists of tensors come and go as tables", function()
  local a, b = kf.ones({ 2 }), kf.zeros({ 2 })
  T.eq(kf.cat({ a, b }):tolist(), { 1, 1, 0, 0 })
  T.eq(kf.stack({ a, b }, 1):tolist(), { { 1, 0 }, { 1, 0 } })
  local parts = kf.arange(6):split(4)
  T.eq({ #parts, parts[2]:tolist() }, { 2, { 4, 5 } })
  local sums = op._foreach_add({ a, b }, 1)
  T.eq({ sums[1]:tolist(), sums[2]:tolist() }, { { 2, 2 }, { 1, 1 } })
  op._foreach_mul_({ a, b }, { 3, 4 })
  T.eq(a:tolist(), { 3, 3 })
  T.eq(op.einsum("ij,jk->ik", { kf.ones(2, 3), kf.ones(3, 2) }):tolist(), { { 3, 3 }, { 3, 3 } })
end)

T.test("operators: in-place ones give the tensor itself, out variants fill theirs", function()
  local x = kf.ones({ 3 })
  local y = x:add_(1)
  T.ok(rawequal(x, y), "identity of the in-place result")
  local out = kf.empty({ 3 })
  op.mul(x, 3, { out = out })
  T.eq(out:tolist(), { 6, 6, 6 })
end)

--- The first call with arguments of some types goes through everything, later ones take what it found.
T.test("operators: later calls with the same types give what the first one gave", function()
  local x, y = kf.randn({ 4, 6 }), kf.rand({ 4, 6 }) + 0.5
  local ids = kf.tensor({ { 0, 2, 1, 0, 3, 1 } }, { dtype = "int64" })
  local square = kf.randn({ 6, 6 })
  local calls = {
    function() return x:abs(), x:clone():abs_() end,
    function() return x:mul(y), x:clone():mul_(y), x:mul(3), x:mul(0.5), x:mul(kf.float(2)), x:clone():mul_(2) end,
    function() return x:add(y), x:add(y, { alpha = 2 }), x:add(1), x:clone():add_(y, { alpha = 0.5 }), x:sub(1, 2) end,
    function() return op.pow(2, x), y:pow(2), y:pow(0.5), op.rsub(x, 1) end,
    function() return x:lerp(y, 0.25), x:addcmul(x, y), x:addcdiv(x, y), x:clone():addcmul_(x, y) end,
    function() return op.addmm(square, square, square), x:mm(square), square:matmul(square) end,
    function() return x:select(0, 1), x:transpose(0, 1), x:narrow(1, 2, 3), x:unsqueeze(0), x:diagonal(), x:tril(), x:triu(1) end,
    function() return x:permute(1, 0), x:permute({ 1, 0 }), x:view(2, 12), x:view(-1), x:view({ 3, 8 }), x:reshape(8, 3) end,
    function() return x:view(1, 4, 6):expand(3, -1, 6), x:flip(0), x:flip({ 0, 1 }), x:unsqueeze(1):squeeze(1), x:flatten(0, 1) end,
    function() return x:sum(), x:sum(1), x:sum(1, true), x:sum({ 0, 1 }), x:mean(-1, true), x:amax(1), x:amax({ 0, 1 }), x:var(1) end,
    function() return x:softmax(-1), x:log_softmax(1), x:cumsum(0), x:logsumexp(-1), x:logsumexp(-1, true), x:argmax(1), x:argmax() end,
    function() return x:gather(0, ids), x:index_select(1, ids:view(-1)), x:clone():scatter_(0, ids, 5), x:scatter(0, ids, y) end,
    function() return x:clamp(-1, 1), x:clamp(nil, 0.5), x:clamp(0.1), x:clamp_min(0), x:clone():clamp_(-1, 0), x:clamp(y, nil) end,
    function() return op.linear(x, square), op.linear(x, square, kf.ones({ 6 })), op.layer_norm(x, { 6 }), op.silu(x), op.gelu(x) end,
    function() return x:gt(0), x:eq(y), x:le(y), x:logical_and(y), x:masked_fill(x:gt(0), 7), op.where(x:gt(0), x, y) end,
    function() return op.where(x:gt(0), x, 0), op.maximum(x, y), op.maximum(x, 0), x:clone():copy_(y), x:clone():zero_() end,
  }
  for number, call in ipairs(calls) do
    local first = { call() }
    for _ = 1, 3 do
      local again = { call() }
      T.eq(#again, #first)
      for i, value in ipairs(first) do
        T.ok(again[i].dtype == value.dtype and again[i]:equal(value), ("result %d of calls %d is the same"):format(i, number))
      end
    end
  end
end)

T.test("operators: later calls give the same tuples, lists, identities and errors", function()
  local x = kf.randn({ 3, 4 })
  for _ = 1, 3 do
    local values, indices = x:max(1)
    T.eq({ values.shape, indices.dtype }, { { 3 }, "int64" })
    values, indices = x:topk(2)
    T.eq({ values.shape, indices.shape }, { { 3, 2 }, { 3, 2 } })
    values = x:sort(0, true)
    T.ok(values[0]:ge(values[2]):all():item(), "sorted")
    T.eq(#x:split(2), 2)
    T.eq(#x:chunk(2, 1), 2)
    T.eq(#x:unbind(0), 3)
    T.ok(rawequal(x, x:add_(1)) and rawequal(x, x:clamp_(-9, 9)) and rawequal(x, x:masked_fill_(x:gt(8), 0)), "identity")
    T.raises(function()
      x:mm(x)
    end, "given tensor float32 (3, 4), tensor float32 (3, 4)")
    T.raises(function()
      x:view(5, 5)
    end, "view: shape '[5, 5]' is invalid")
    T.raises(function()
      x:add(y) -- luacheck: ignore
    end, "add: ")
    local gone = kf.ones({ 2 })
    gone:free()
    T.raises(function()
      gone:add(gone)
    end, "this tensor was freed")
  end
end)

T.test("operators: gradients flow through later calls as through the first", function()
  local function gradient()
    local w = kf.arange(12, { dtype = "float32" }):view(3, 4):div(10)
    w:requires_grad_(true)
    w:mul(2):add(w):softmax(-1):pow(2):sum():backward()
    return w.grad
  end
  local first = gradient()
  T.ok(gradient():equal(first) and gradient():equal(first) and first:abs():sum():item() > 0, "the same gradient")
end)

T.test("operators: names of types, formats and devices are strings", function()
  local x = kf.zeros({ 2, 2 }, { dtype = "bf16", device = "cpu" })
  T.eq({ x.dtype, x.device, x.layout }, { "bfloat16", "cpu", "strided" })
  T.eq(x:to("float64").dtype, "float64")
  T.eq(x:to(kf.zeros({ 1 }, { dtype = "int32" })).dtype, "int32")
  T.eq(x:float().dtype, "float32")
  T.eq(x:contiguous({ memory_format = "contiguous_format" }).shape, { 2, 2 })
  T.eq(op.result_type(x, 1.5), "bfloat16")
  T.eq(kf.tensor({ 7, 2 }):div(kf.tensor({ 2, 2 }), { rounding_mode = "floor" }):tolist(), { 3, 1 })
end)

T.test("operators: index lists may have gaps", function()
  local x = kf.arange(6):view(2, 3)
  T.eq(op.index(x, { false, kf.tensor({ 2, 0 }, { dtype = "int64" }) }):tolist(), { { 2, 0 }, { 5, 3 } })
end)

T.test("errors: an unknown name suggests the nearest", function()
  T.raises(function()
    return op.sotfmax
  end, "did you mean 'softmax'?")
  T.raises(function()
    local x = kf.ones({ 2 })
    x:sofmax(0)
  end, "did you mean 'softmax'?")
end)

T.test("errors: a wrong argument is named, with what was given", function()
  T.raises(function()
    op.tril(kf.ones({ 2, 2 }), "x")
  end, "tril: argument 'diagonal' must be an int, got 'x'")
  T.raises(function()
    kf.op.add(kf.ones({ 2 }), {})
  end, "no overload takes (tensor float32 (2), table); there are")
  T.raises(function()
    kf.ones({ 2, 2 }):relu(1)
  end, "takes 1 arguments by place, got 2")
  T.raises(function()
    kf.ones({ 2, 2 }):cumsum({ dimm = 1 })
  end, "dimm")
  T.raises(function()
    kf.ones({ 2, 3 }):mm(kf.ones({ 2, 3 }))
  end, "given tensor float32 (2, 3), tensor float32 (2, 3)")
  T.raises(function()
    kf.zeros({ 2 }, { dtype = "float23" })
  end, "float23")
end)

T.test("help: signatures are printed and returned", function()
  local text
  local print_before = print
  print = function() end -- luacheck: ignore
  text = op.help("softmax")
  print = print_before -- luacheck: ignore
  T.ok(text:find("softmax.int(self: Tensor, dim: int, dtype: dtype? = nil) -> Tensor", 1, true), text)
end)

T.test("keywords: a table without any says nothing; names in a list are told, wherever it stands", function()
  local x = kf.arange(12, { dtype = "float32" }):view(3, 4)
  local unset = nil
  T.ok(x:div(2, { rounding_mode = unset }):equal(x:div(2)))
  T.ok(x:softmax(-1, { dtype = unset }):equal(x:softmax(-1)))
  T.eq(x:argmax({ dim = unset }):item(), 11)
  T.eq(x:sum(1, {}).shape[1], 3)
  T.ok(kf.op.cat({ x, x }, {}):equal(kf.op.cat({ x, x })))
  T.eq(#kf.zeros({}).shape, 0)
  local told = "a list has items only, got the key 'keepdim'; keywords are a table of their own, last"
  for _ = 1, 2 do
    T.raises(function()
      x:sum({ 1, keepdim = true })
    end, told)
    T.raises(function()
      x:sum({ keepdim = true }, true)
    end, told)
  end
end)

T.test("keywords: calls with a table give what calls by place give, however often and in which order they come", function()
  local x, y = kf.randn({ 3, 4 }), kf.randn({ 3, 4 })
  local keep, drop = x:sum(1, true), x:sum(0)
  for _ = 1, 3 do -- the first call chooses the overload, the others take the choice
    T.ok(x:sum({ dim = 1, keepdim = true }):equal(keep))
    T.ok(x:sum({ keepdim = true, dim = 1 }):equal(keep))
    T.ok(x:sum({ dim = { 0 } }):equal(drop))
    T.ok(x:sum(1, { keepdim = true }):equal(keep))
    T.ok(x:add(y, { alpha = 2 }):equal(x + 2 * y))
    T.ok(x:narrow({ dim = 1, start = 1, length = 2 }):equal(x[{ kf.all, { 1, 3 } }]))
    T.ok(x:narrow({ dim = 1, start = 2, length = 1 }):equal(x[{ kf.all, { 2, 3 } }]))
    T.ok(x:clamp({ min = 0 }):equal(kf.op.relu(x)))
    T.ok(x:clamp({ max = 0 }):equal(-kf.op.relu(-x)))
    local values, indices = x:max({ dim = 1 })
    local same_values, same_indices = x:max(1)
    T.ok(values:equal(same_values) and indices:equal(same_indices))
    T.raises(function()
      x:sum({ dims = 1, keepdim = true })
    end, "dims")
    T.raises(function()
      x:sum(1, { dim = 1 })
    end, "")
  end
end)

T.test("names: a whole word of an operator's name is nearer than a name of like length", function()
  T.raises(function()
    return op.cross_entropy
  end, "did you mean 'cross_entropy_loss'?")
  T.raises(function()
    return op.numel
  end, "kf.op has no operator 'numel'; it is a method: t:numel(...)")
end)

T.test("names: every operator is in kf, as in torch; what is none says where it is", function()
  local x = kf.randn({ 2, 3 })
  T.ok(kf.softmax(x, -1):equal(x:softmax(-1)))
  T.eq(kf.topk(kf.arange(5), 2), op.topk(kf.arange(5), 2))
  T.raises(function()
    return kf.numel(x)
  end, "kf has no field 'numel'; it is a method: t:numel(...)")
  T.raises(function()
    return kf.cross_entropy
  end, "kf has no field 'cross_entropy'; it is kf.nn.functional.cross_entropy(...)")
  T.raises(function()
    return kf.float16
  end, 'types are strings: kf.zeros({ 2 }, { dtype = "float16" })')
  T.raises(function()
    for row in x do
      T.ok(row)
    end
  end, "for i, row in t:iter() do")
  T.eq({ table.unpack({ 1, 2, 3 }) }, { 1, 2, 3 }) -- luacheck: ignore 143
  kf.manual_seed(3)
  local first = kf.rand({ 2 })
  kf.rng:seed(3)
  T.ok(first:equal(kf.rand({ 2 })))
end)

T.test("kf.nn.functional: names and arguments of torch.nn.functional", function()
  local F = kf.nn.functional
  local logits, labels = kf.randn({ 4, 5 }), kf.tensor({ 1, 0, -100, 4 }, { dtype = "int64" })
  local logp = logits:log_softmax(-1)
  local wanted = -(logp[0][1] + logp[1][0] + logp[3][4]):item()
  T.near(F.cross_entropy(logits, labels):item(), wanted / 3, 1e-6)
  T.near(F.cross_entropy(logits, labels, { reduction = "sum" }):item(), wanted, 1e-6)
  T.near(F.nll_loss(logp, labels, { reduction = "sum" }):item(), wanted, 1e-6)
  local weight = kf.randn({ 5, 2 })
  T.ok(F.embedding(kf.tensor({ 3, 1 }, { dtype = "int64" }), weight)[0]:equal(weight[3]))
  T.near(F.normalize(kf.tensor({ { 3, 4 } })):tolist(), { { 0.6, 0.8 } })
  T.ok(F.dropout(logits, 0.5, false):equal(logits))
  T.ok(F.silu(logits):equal(logits:silu()))
  T.raises(function()
    return F.sofmax
  end, "softmax")
end)

T.test("kf.nn: what PyTorch calls otherwise", function()
  local hints =
    { Linear = "nn.linear?", LayerNorm = "nn.layernorm?", ModuleList = "nn.list?", GELU = "kf.gelu(x)", lstms = "have: " }
  for name, hint in pairs(hints) do
    T.raises(function()
      return kf.nn[name]
    end, hint)
  end
  T.raises(function()
    kf.nn.parameter({ 2 }, { std = 0.1 })
  end, "no option 'std'; init = 0.02 draws with that deviation")
  local m = kf.nn.linear(2, 3, { bias = true }):materialize()
  local seen = {}
  for name, weight in m:parameters() do
    seen[name] = weight.shape
  end
  T.eq(seen, { weight = { 3, 2 }, bias = { 3 } })
  T.raises(function()
    return m.state_dict
  end, "m:parameters() is a table of all weights by name")
  T.raises(function()
    return m.paramters
  end, "did you mean 'parameters'?")
end)

T.test("tensors one by one, where PyTorch's own functions take them so", function()
  local a, b = kf.randn({ 2, 3 }), kf.randn({ 3, 4 })
  for _ = 1, 2 do -- the second call takes the choice of the first
    T.ok(kf.einsum("ij,jk->ik", a, b):allclose(a:matmul(b), 1e-4, 1e-5))
    T.eq(kf.einsum("ij->j", a).shape, { 3 })
    T.eq(op.block_diag(a, b).shape, { 5, 7 })
    T.eq(#op.meshgrid(a[0], b[0], { indexing = "ij" }), 2)
  end
  T.raises(function()
    kf.cat(a, a)
  end, "cat")
end)

T.test("out: a list of the tensors to write to, as PyTorch's tuple", function()
  local x = kf.randn({ 3, 4 })
  local values, indices = kf.empty({ 3 }), kf.empty({ 3 }, { dtype = "int64" })
  for _ = 1, 2 do
    values:zero_()
    local got = op.max(x, 1, { out = { values, indices } })
    T.ok(values:equal(x:amax(1)) and indices:equal(x:argmax(1)) and got:equal(values))
  end
  op.topk(x, { k = 1, dim = 1, out = { values, indices } })
  T.eq(values.shape, { 3, 1 })
  T.raises(function()
    op.max(x, 1, { out = { values } })
  end, "max")
end)
