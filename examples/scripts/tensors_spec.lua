--- Run with `kf-host test tensors_spec.lua`: the tensor language in a nutshell, as tests.
local kf = require("kf")
local T = require("kf.test")

T.test("operators, keywords, shapes", function()
  local x = kf.arange(12, { dtype = "float32" }):view(3, 4)
  T.eq({ x:size() }, { 3, 4 })
  T.eq(x.shape, { 3, 4 })
  T.near(x:sum():item(), 66)
  T.eq(x:sum({ dim = 1, keepdim = true }).shape, { 3, 1 })
  local values, indices = x:max(1) -- tuples come back as several results
  T.eq(values:tolist(), { 3, 7, 11 })
  T.eq(indices:tolist(), { 3, 3, 3 }) -- counted from 0
  T.near(x:matmul(x:t()):trace():item(), 506)
end)

T.test("indexing follows PyTorch", function()
  local x = kf.arange(12):view(3, 4)
  T.eq(x[0]:tolist(), { 0, 1, 2, 3 })
  T.eq(x[-1][0]:item(), 8)
  T.eq(x[{ { 0, 2 }, 1 }]:tolist(), { 1, 5 })
  T.eq(x[{ kf.all, { 0, 4, 2 } }]:tolist(), { { 0, 2 }, { 4, 6 }, { 8, 10 } })
  x[{ 0, 0 }] = 100
  T.eq(x[x:gt(9)]:tolist(), { 100, 10, 11 })
  T.raises(function()
    return x[3]
  end, "index 3 is out of bounds")
end)

T.test("errors name the operator, the argument and the line", function()
  T.raises(function()
    kf.ones({ 2, 3 }):matmul(kf.ones({ 2, 3 }))
  end, "tensors_spec.lua")
  T.raises(function()
    kf.op.softmaxx(kf.ones({ 2 }), 0)
  end, "softmax")
end)

T.test("gradients", function()
  local w = kf.ones({ 3 }, { requires_grad = true })
  local loss = (w * kf.tensor({ 1, 2, 3 })):pow(2):sum()
  loss:backward()
  T.eq(w.grad:tolist(), { 2, 8, 18 })
  T.gradcheck(function(x)
    return x:tanh():sum()
  end, kf.randn({ 4 }, { dtype = "float64" }))
end)
