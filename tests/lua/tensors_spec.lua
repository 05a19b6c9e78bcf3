--- Tensors: conversion, indexing, arithmetic, printing, memory.
local kf = require("kf")
local T = require("kf.test")

T.test("conversion: tables become tensors and come back", function()
  local x = kf.tensor({ { 1, 2 }, { 3, 4.5 } })
  T.eq({ x.dtype, x.shape, x:tolist() }, { "float32", { 2, 2 }, { { 1, 2 }, { 3, 4.5 } } })
  T.eq(kf.tensor(3.5):item(), 3.5)
  T.eq(kf.tensor({ true, false }).dtype, "bool")
  T.eq(kf.tensor({ 1, 2 }, { dtype = "int64" }).dtype, "int64")
  T.eq(kf.tensor({}).shape, { 0 })
  T.eq(kf.tensor({ true, false }):tolist(), { true, false })
end)

T.test("conversion: lists that do not fit together name their place", function()
  T.raises(function()
    kf.tensor({ { 1, 2 }, { 3 } })
  end, "a list of 1 items stands beside lists of 2 at [2]")
  T.raises(function()
    kf.tensor({ { 1, 2 }, 3 })
  end, "at [2]")
  T.raises(function()
    kf.tensor({ 1, { 2 } })
  end, "at [2]")
  T.raises(function()
    kf.tensor({ 1, "x" })
  end, "got 'x' at [2]")
  T.raises(function()
    kf.tensor({ 1.5 }, { dtype = "int64" })
  end, "is no int64 at [1]")
end)

T.test("conversion: int64 values are exact", function()
  local big = kf.tensor({ 9007199254740993LL }, { dtype = "int64" })
  T.eq(tostring(big:item()), "9007199254740993LL")
  T.eq(big:add(kf.tensor({ 1 }, { dtype = "int64" })):item(), 9007199254740994LL)
  T.eq(kf.tensor({ 5 }, { dtype = "int64" }):item(), 5)
end)

T.test("conversion: whole numbers that do not fit their type are refused, as PyTorch does", function()
  local refused = {
    { 300, "uint8", "300 cannot be converted to uint8 without overflow" },
    { -1, "uint8", "-1 cannot be converted to uint8 without overflow" },
    { 128, "int8", "without overflow" },
    { -129, "int8", "without overflow" },
    { 40000, "int16", "without overflow" },
    { -32769, "int16", "without overflow" },
    { 2 ^ 31, "int32", "2147483648 cannot be converted to int32 without overflow" },
    { -2 ^ 31 - 1, "int32", "without overflow" },
    { 65536, "uint16", "without overflow" },
    { -1, "uint64", "without overflow" },
    { 2 ^ 63, "int64", "without overflow" },
    { 2 ^ 64, "uint64", "without overflow" },
    { 9223372036854775808ULL, "int64", "9223372036854775808 cannot be converted to int64 without overflow" },
    { 2 ^ 60, "int64", "write 1152921504606846976LL" },
    { 1 / 0, "int32", "without overflow" },
    { 1.5, "int32", "is no int32" },
    { 0 / 0, "uint8", "is no uint8" },
    { true, "uint8", "is no uint8" },
  }
  for _, case in ipairs(refused) do
    local value, dtype, message = unpack(case)
    T.raises(function()
      return kf.tensor({ value }, { dtype = dtype })
    end, message)
    T.raises(function()
      return kf.tensor({ { 0, 1 }, { 1, value } }, { dtype = dtype })
    end, "at [2][2]")
    T.raises(function()
      local t = kf.zeros({ 2 }, { dtype = dtype })
      t[{ { 0, 2 } }] = { 1, value }
    end, message)
  end
  local taken = {
    { 255, "uint8" },
    { -128, "int8" },
    { 32767, "int16" },
    { -2 ^ 31, "int32" },
    { 2 ^ 32 - 1, "uint32" },
    { 2 ^ 53, "int64" },
    { 9223372036854775807LL, "int64" },
    { 18446744073709551615ULL, "uint64" },
  }
  for _, case in ipairs(taken) do
    local back = kf.tensor({ case[1] }, { dtype = case[2] })
    T.ok(back[0]:item() == case[1], case[2])
    T.ok(back:tolist()[1] == case[1], case[2])
  end
  T.eq(kf.tensor({ 2, 0 }, { dtype = "bool" }):tolist(), { true, false }) -- as PyTorch: what is not 0 is true
end)

T.test("conversion: 2^63 is refused wherever a number goes into an int64", function()
  local t = kf.zeros({ 2 }, { dtype = "int64" })
  local ways = {
    function()
      return kf.full({ 1 }, 2 ^ 63, { dtype = "int64" })
    end,
    function()
      return kf.full({ 1 }, { fill_value = 2 ^ 63, dtype = "int64" })
    end,
    function()
      return kf.full_like(t, 2 ^ 63)
    end,
    function()
      return t:fill_(2 ^ 63)
    end,
    function()
      return t:masked_fill(t:eq(0), 2 ^ 63)
    end,
    function()
      t[0] = 2 ^ 63
    end,
    function()
      return t:fill_(kf.float(2 ^ 63))
    end,
  }
  for number, way in ipairs(ways) do
    local _, message = pcall(way)
    T.ok(tostring(message):find("without overflow", 1, true), "way " .. number)
  end
  T.eq(kf.full({ 1 }, 2 ^ 63, { dtype = "float64" }):item(), 2 ^ 63)
  T.eq((kf.ones({ 1 }) * 2 ^ 63):item(), 2 ^ 63)
  T.eq(t:to("float32"):fill_(2 ^ 63)[0]:item(), 2 ^ 63)
end)

T.test("memory: __gc by hand, and twice, breaks nothing", function()
  local x = kf.ones(2, { requires_grad = true })
  local linear = kf.nn.linear(2, 2)
  local things = {
    kf.ones(2),
    kf.generator(3),
    linear,
    kf.nn.parameter({ 2 }),
    x:register_hook(print),
    kf.nn.module({ inner = kf.nn.linear(2, 2), forward = print }):register_forward_hook(print),
  }
  for number, thing in ipairs(things) do
    local meta = debug.getmetatable(thing)
    if type(thing) == "userdata" then
      T.ok(meta.__gc, "thing " .. number)
      meta.__gc(thing)
      meta.__gc(thing)
      meta.__gc(io.stdout)
      pcall(meta.__gc, 5)
      pcall(meta.__gc)
      pcall(tostring, thing)
      pcall(function()
        return thing:sum(), thing(kf.ones(2)), thing:remove(), thing:random()
      end)
    end
  end
  collectgarbage()
  collectgarbage()
end)

T.test("messages: what takes Lua's own values names the tensor's way", function()
  local t = kf.arange(3)
  T.raises(function()
    return ipairs(t)
  end, "for i, row in t:iter() do")
  T.raises(function()
    return math.exp(t)
  end, "t:exp()")
end)

T.test("indexing: the forms of PyTorch, counted from 0", function()
  local x = kf.arange(24):view(2, 3, 4)
  T.eq(x[1][2][3]:item(), 23)
  T.eq(x[{ 0, { 1, 3 }, -1 }]:tolist(), { 7, 11 })
  T.eq(x[{ kf.all, kf.all, { 0, 4, 3 } }].shape, { 2, 3, 2 })
  T.eq(x[{ "...", 0 }]:tolist(), { { 0, 4, 8 }, { 12, 16, 20 } })
  T.eq(x[{ 0, 0, { 2 } }]:tolist(), { 2, 3 })
  T.eq(x[{ "new", 0 }].shape, { 1, 3, 4 })
  T.eq(x[kf.tensor({ 1, 0, 1 }, { dtype = "int64" })].shape, { 3, 3, 4 })
  T.eq(x[x:gt(21)]:tolist(), { 22, 23 })
  T.eq(#x, 2)
end)

T.test("indexing: assignment", function()
  local x = kf.zeros({ 3, 3 })
  x[0] = 1
  x[{ 1, { 0, 2 } }] = kf.tensor({ 5, 6 })
  x[{ 2, 2 }] = true
  x[x:eq(0)] = -1
  x[{ { 1, 2 }, 2 }] = { 9 }
  T.eq(x:tolist(), { { 1, 1, 1 }, { 5, 6, 9 }, { -1, -1, 1 } })
  T.raises(function()
    x[{ 0, 0 }] = "one"
  end, "must be a number")
end)

T.test("indexing: errors are at the script's line", function()
  local message = T.raises(function()
    return kf.zeros({ 2 })[5], 1
  end, "index 5 is out of bounds")
  T.ok(message:find("tensors_spec.lua:%d+:"), message)
  T.raises(function()
    return kf.zeros({ 2 })[1.5], 1
  end, "an index is a whole number")
end)

T.test("iteration: rows with their index from 0", function()
  local rows = {}
  for i, row in kf.arange(6):view(3, 2):iter() do
    rows[#rows + 1] = { i, row:tolist() }
  end
  T.eq(rows, { { 0, { 0, 1 } }, { 1, { 2, 3 } }, { 2, { 4, 5 } } })
end)

T.test("arithmetic: numbers on either side", function()
  local x = kf.tensor({ 1, 2, 4 })
  T.eq((x + 1):tolist(), { 2, 3, 5 })
  T.eq((1 - x):tolist(), { 0, -1, -3 })
  T.eq((2 * x):tolist(), { 2, 4, 8 })
  T.eq((8 / x):tolist(), { 8, 4, 2 })
  T.eq((x / 2):tolist(), { 0.5, 1, 2 })
  T.eq((x ^ 2):tolist(), { 1, 4, 16 })
  T.eq((2 ^ x):tolist(), { 2, 4, 16 })
  T.eq((x % 3):tolist(), { 1, 2, 1 })
  T.eq((-x):tolist(), { -1, -2, -4 })
  T.ok(x == x and x ~= x:clone(), "identity")
  T.raises(function()
    return x < 3
  end, "attempt to compare")
  T.raises(function()
    return x < x
  end, "a:lt(b)")
  T.raises(function()
    return x + {}
  end, "a number or a tensor is wanted")
end)

T.test("printing: as PyTorch does", function()
  T.eq(tostring(kf.arange(3)), "tensor([0, 1, 2])")
  T.eq(tostring(kf.tensor({ { 1, 2 }, { 3, 4 } })), "tensor([[1., 2.],\n        [3., 4.]])")
  T.eq(tostring(kf.tensor({ 0.5, -1 })), "tensor([ 0.5000, -1.0000])")
  T.eq(tostring(kf.ones({ 2 }, { dtype = "bf16" })), 'tensor([1., 1.], dtype = "bfloat16")')
  T.ok(tostring(kf.arange(2000)):find("[   0,    1,    2, ..., 1997, 1998, 1999]", 1, true), tostring(kf.arange(2000)))
end)

T.test("data_ptr: raw memory with its length", function()
  local x = kf.zeros({ 4 }, { dtype = "int32" })
  local p, n = x:data_ptr()
  for i = 0, n - 1 do
    p[i] = i * i
  end
  T.eq(x:tolist(), { 0, 1, 4, 9 })
  T.raises(function()
    kf.zeros({ 2, 2 }):t():data_ptr()
  end, "not contiguous")
end)

T.test("memory: a thousand tensors of 100 MB pass through", function()
  local function resident()
    for line in io.lines("/proc/self/status") do
      local kb = line:match("VmHWM:%s*(%d+)")
      if kb then
        return tonumber(kb) / 1024
      end
    end
  end
  for _ = 1, 1000 do
    local x = kf.empty({ 25 * 1024 * 1024 })
    x[0] = 1
  end
  for _ = 1, 100 do
    kf.zeros({ 1024 * 1024 }) -- touched memory
  end
  T.ok(resident() < 2000, ("peak of %d MB"):format(resident()))
end)

T.test("memory: free gives it back, and a freed tensor says so", function()
  local x = kf.ones({ 3 })
  x:free()
  T.raises(function()
    return x + 1
  end, "this tensor was freed")
  T.eq(tostring(x), "tensor (freed)")
end)

T.test("rng: seeds repeat, states go on", function()
  kf.rng:seed(7)
  local a = kf.randn({ 3 })
  local state = kf.rng:state()
  local b = kf.rand({ 2 })
  kf.rng:load(state)
  T.eq(kf.rand({ 2 }), b)
  kf.rng:seed(7)
  T.eq(kf.randn({ 3 }), a)
  local own = kf.generator(1)
  T.eq(kf.randn({ 2 }, { generator = own }), kf.randn({ 2 }, { generator = kf.generator(1) }))
  local n = kf.rng:random(3, 5)
  T.ok(n >= 3 and n <= 5 and n % 1 == 0, tostring(n))
end)

T.test("safetensors: complex tensors", function()
  local path = os.tmpname()
  local x = kf.view_as_complex(kf.randn({ 3, 2 }))
  kf.safetensors.save(path, { x = x })
  local back = kf.safetensors.load(path).x
  os.remove(path)
  T.eq(back.dtype, "complex64")
  T.ok(back.real:equal(x.real) and back.imag:equal(x.imag))
end)

T.test("safetensors: tensors and their names go through a file", function()
  local path = os.tmpname()
  kf.safetensors.save(path, { a = kf.arange(3), b = kf.ones({ 2, 2 }, { dtype = "bf16" }) }, { note = "x" })
  local back, metadata = kf.safetensors.load(path)
  os.remove(path)
  T.eq(back.a, kf.arange(3))
  T.eq(back.b, kf.ones({ 2, 2 }, { dtype = "bf16" }))
  T.eq(metadata.note, "x")
end)
