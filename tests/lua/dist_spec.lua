--- kf.dist and kf.mesh on one rank: the identity, and errors by name. tests/e2e/ranks_test.cpp has several.
local kf = require("kf")
local T = require("kf.test")

T.test("dist: with one rank every call is the identity, also for gradients", function()
  local t = kf.tensor({ { 1, 2 }, { 3, 4 } }, { requires_grad = true })
  local calls = {
    sum = kf.dist.sum(t, "tp"),
    shared = kf.dist.shared(t),
    gather = kf.dist.gather(t, "cp", 1),
    scatter = kf.dist.scatter(t, "dp_shard", -1),
    part = kf.dist.part(t, "data"),
    join = kf.dist.join(t, "all"),
    largest = kf.dist.largest(t, "pp"),
    broadcast = kf.dist.broadcast(t, "ep", 0),
  }
  for name, result in pairs(calls) do
    T.ok(result:equal(t), name)
    T.eq(result.requires_grad, name ~= "largest" and name ~= "broadcast", name)
  end
  local rows, received = kf.dist.exchange(t, "ep", { 2 })
  T.ok(rows:equal(t))
  T.eq(received, { 2 })
  kf.dist.sum(t * 2, "tp"):sum():backward()
  T.ok(t.grad:equal(kf.full({ 2, 2 }, 2)))
  T.eq(kf.dist.tell("here"), { "here" })
  kf.dist.barrier()
end)

T.test("dist: wrong axes, dims, ranks and rows are named", function()
  local t = kf.ones({ 2, 3 })
  T.raises(function() kf.dist.sum(t, "tq") end, "kf.dist.sum: no axis 'tq'; did you mean 'tp'?")
  T.raises(function() kf.dist.sum(2) end, "kf.dist.sum: expected a tensor, got number 2")
  T.raises(function() kf.dist.gather(t, "tp", 2) end, "kf.dist.gather: expected a dim of float32 (2, 3), got number 2")
  T.raises(function() kf.dist.broadcast(t, "tp", 1) end, "kf.dist.broadcast: expected a rank of tp, 0 to 0, got number 1")
  T.raises(function() kf.dist.exchange(t, "ep", { 1 }) end, "kf.dist.exchange: 1 rows are to go to the ranks of ep, and the tensor has 2")
end)

T.test("mesh: is there while a run is on, and says where this rank stands", function()
  T.eq(kf.mesh, nil)
  local seen
  kf.run({
    run = { name = "mesh" },
    model = { dim = 16, n_layers = 1, n_heads = 2, vocab_size = 64, max_seq_len = 16 },
    train = { batch_size = 2, seq_len = 16, max_steps = 1, mixed_precision = "fp32" },
    hooks = { { name = "looks", on_step_end = function() seen = kf.mesh end } },
  })
  T.eq(seen.size, 1)
  T.eq(seen.rank, 0)
  T.eq(seen.degrees.tp, 1)
  T.eq(seen.coordinates.cp, 0)
  T.eq(kf.mesh, nil)
end)
