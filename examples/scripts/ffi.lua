--- Data at C speed: LuaJIT compiles loops over FFI pointers to machine code, so bytes and ids can be touched one by one.
--- Run it: kf-host examples/scripts/ffi.lua
local kf = require("kf")
local ffi = require("ffi")

--- Lower case, runs of white space as one blank: a byte at a time, into a buffer that all documents share.
kf.register.transform("normalise", function()
  local size, buffer = 0, nil
  return function(doc)
    local text = doc.text
    if #text > size then
      size = 2 * #text
      buffer = ffi.new("uint8_t[?]", size)
    end
    local from = ffi.cast("const uint8_t*", text)
    local length, blank = 0, true
    for i = 0, #text - 1 do
      local byte = from[i]
      if byte == 32 or (byte >= 9 and byte <= 13) then
        if not blank then
          buffer[length], length, blank = 32, length + 1, true
        end
      else
        if byte >= 65 and byte <= 90 then
          byte = byte + 32
        end
        buffer[length], length, blank = byte, length + 1, false
      end
    end
    doc.text = ffi.string(buffer, length)
    return doc
  end
end, { doc = "Lower case, single blanks." })

--- Sample i of a sequence that is computed, not stored: written through the typed pointer of an int64 tensor.
kf.register.dataset("collatz", function(a)
  return {
    size = 5000,
    get = function(i)
      local ids = kf.empty({ a.seq_len + 1 }, { dtype = "int64" })
      local p, n = ids:data_ptr() -- int64_t*, and how many it may touch
      local x = i + 2
      for k = 0, n - 1 do
        p[k] = x % 256
        x = x % 2 == 0 and x / 2 or 3 * x + 1
      end
      return ids
    end,
  }
end, { doc = "Collatz sequences modulo 256." })

-- What a loop over a tensor costs: about as much as in C.
local bytes = kf.randint(0, 256, { 1000000 }, { dtype = "uint8" })
local counts = ffi.new("int32_t[256]")
local p, n = bytes:data_ptr()
local start = os.clock()
for i = 0, n - 1 do
  counts[p[i]] = counts[p[i]] + 1
end
print(("a histogram of %d bytes in %.1f ms"):format(n, (os.clock() - start) * 1e3))
assert(counts[7] == bytes:eq(7):sum():item())

---@type kf.Config
return {
  extends = "base.toml",
  run = { name = "ffi" },
  data = {
    dataset_path = "",
    datasets = {
      { name = "text", path = "/usr/share/common-licenses", weight = 0.8, transforms = { "normalise" } },
      { name = "numbers", dataset = "collatz", weight = 0.2 },
    },
  },
}
