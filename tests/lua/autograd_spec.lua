--- Gradients: backward, hooks, functions with their own backward, errors inside.
local kf = require("kf")
local T = require("kf.test")

T.test("autograd: backward, grad and no_grad", function()
  local x = kf.tensor({ 1, 2 }, { requires_grad = true })
  local y = kf.tensor({ 3, 4 }, { requires_grad = true })
  local loss = (x * y):sum()
  loss:backward()
  T.eq({ x.grad:tolist(), y.grad:tolist() }, { { 3, 4 }, { 1, 2 } })
  x.grad = nil
  T.eq(x.grad, nil)
  local gx, gy = kf.grad((x * y):sum(), { x, y })
  T.eq({ gx:tolist(), gy:tolist() }, { { 3, 4 }, { 1, 2 } })
  local z = kf.no_grad(function()
    return x * 2
  end)
  T.eq(z.requires_grad, false)
  T.eq(kf.is_grad_enabled(), true)
  pcall(kf.no_grad, error)
  T.eq(kf.is_grad_enabled(), true)
  T.raises(function()
    z:sum():backward()
  end, "requires gradients")
end)

T.test("autograd: second derivatives", function()
  local x = kf.tensor({ 2.0 }, { requires_grad = true })
  local g = kf.grad((x ^ 3):sum(), x, { create_graph = true })
  T.eq(kf.grad(g:sum(), x):item(), 12)
end)

T.test("hooks: a gradient can be seen and replaced", function()
  local x = kf.tensor({ 1, 2 }, { requires_grad = true })
  local seen
  local handle = x:register_hook(function(g)
    seen = g:tolist()
    return g * 10
  end);
  (x * 2):sum():backward()
  T.eq({ seen, x.grad:tolist() }, { { 2, 2 }, { 20, 20 } })
  handle:remove()
  x.grad = nil;
  (x * 2):sum():backward()
  T.eq(x.grad:tolist(), { 2, 2 })
end)

T.test("hooks: an error arrives with the script's line, and backward works afterwards", function()
  local x = kf.tensor({ 1, 2 }, { requires_grad = true })
  local handle = x:register_hook(function()
    error("no such gradient")
  end)
  local message = T.raises(function()
    (x * x):sum():backward()
  end, "no such gradient")
  T.ok(message:find("autograd_spec.lua:%d+: no such gradient"), message)
  handle:remove();
  (x * x):sum():backward()
  T.eq(x.grad:tolist(), { 2, 4 })
end)

T.test("hooks: they run on the coroutine that calls backward", function()
  local x = kf.tensor({ 1 }, { requires_grad = true })
  local inside
  x:register_hook(function()
    inside = coroutine.running()
  end)
  local co = coroutine.create(function()
    (x * 2):sum():backward()
  end)
  assert(coroutine.resume(co))
  T.ok(inside == co, "the coroutine of the hook")
end)

local cube = kf.autograd.fn({
  forward = function(ctx, x, scale)
    ctx:save(x)
    ctx.scale = scale
    return x ^ 3 * scale
  end,
  backward = function(ctx, grad)
    local x = ctx:saved()
    return grad * 3 * x ^ 2 * ctx.scale
  end,
})

T.test("functions: forward and backward of one's own", function()
  local x = kf.tensor({ 1, -2 }, { requires_grad = true })
  local y = cube(x, 2)
  T.eq(y:tolist(), { 2, -16 })
  y:sum():backward()
  T.eq(x.grad:tolist(), { 6, 24 })
  T.gradcheck(function(t)
    return cube(t, 0.5):sum()
  end, kf.randn({ 3 }, { dtype = "float64" }))
end)

T.test("functions: several inputs and results, and an input without a gradient", function()
  local both = kf.autograd.fn({
    forward = function(ctx, a, b)
      ctx:save(a, b)
      T.eq(ctx.needs_input_grad, { true, false })
      return a * b, a + b
    end,
    backward = function(ctx, g, h)
      local _, b = ctx:saved()
      return g * b + h
    end,
  })
  local a = kf.tensor({ 2 }, { requires_grad = true })
  local p, q = both(a, kf.tensor({ 5 }));
  (p + q):sum():backward()
  T.eq(a.grad:item(), 6)
end)

T.test("functions: errors inside backward name the line; wrong results are refused", function()
  local bad = kf.autograd.fn({
    forward = function(_, x)
      return x * 2
    end,
    backward = function()
      error("cannot go back")
    end,
  })
  local x = kf.tensor({ 1 }, { requires_grad = true })
  local message = T.raises(function()
    bad(x):sum():backward()
  end, "cannot go back")
  T.ok(message:find("autograd_spec.lua:%d+: cannot go back"), message)
  local many = kf.autograd.fn({
    forward = function(_, t)
      return t * 2
    end,
    backward = function(_, g)
      return g, g
    end,
  })
  T.raises(function()
    many(x):sum():backward()
  end, "returned 2 gradients for 1 arguments")
  T.raises(function()
    kf.autograd.fn({ forward = print })
  end, "backward must be a function, got nil")
end)

T.test("functions: a million calls leave memory flat", function()
  local function resident()
    local pages = io.open("/proc/self/statm"):read("*l"):match("^%d+ (%d+)")
    return tonumber(pages) * 4 / 1024
  end
  local x = kf.ones({ 4 }, { requires_grad = true })
  local function work(n)
    for _ = 1, n do
      x.grad = nil
      cube(x, 1):sum():backward()
    end
    collectgarbage()
    collectgarbage()
  end
  work(2000)
  local before = resident()
  work(20000)
  T.ok(resident() - before < 8, ("growth of %.1f MB"):format(resident() - before))
end)
