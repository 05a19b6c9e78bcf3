--- The shipped schedules, and the text that options and plots make.
local T = require("kf.test")

--- What a factory gets.
local function args(about, options, warmup, max_steps)
  return {
    config = { scheduler = { warmup_steps = warmup or 10 } },
    options = require("kf.options").read("x", about.fields, options),
    max_steps = max_steps or 100,
  }
end

T.test("inverse_sqrt rises to 1 and falls with the root of the step", function()
  local m = require("kf.schedules.inverse_sqrt")
  local f = m.new(args(m.about, { floor = 0.2 }))
  T.near(f(0), 0)
  T.near(f(5), 0.5)
  T.near(f(10), 1)
  T.near(f(40), 0.5)
  T.near(f(100000), 0.2)
end)

T.test("one_cycle starts low, peaks at its share of the run, ends at almost nothing", function()
  local m = require("kf.schedules.one_cycle")
  local f = m.new(args(m.about, {}))
  T.near(f(0), 0.04)
  T.near(f(15), (1 + 0.04) / 2)
  T.near(f(30), 1)
  T.near(f(65), (1 + 1e-4) / 2)
  T.near(f(100), 1e-4)
  T.near(f(200), 1e-4)
end)

T.test("wsd_branches: a trunk stays at the peak, a branch decays over its last steps", function()
  local m = require("kf.schedules.wsd_branches")
  local trunk = m.new(args(m.about, {}))
  T.near(trunk(5), 0.5)
  T.near(trunk(99), 1)
  local branch = m.new(args(m.about, { decay_steps = 20, floor = 0.1 }))
  T.near(branch(79), 1)
  T.near(branch(80), 1)
  T.near(branch(85), 1 - 0.9 * math.sqrt(0.25))
  T.near(branch(100), 0.1)
  local jobs = m.branches("job.toml", "runs/trunk/checkpoints", { 40, 60 }, 10)
  T.eq(#jobs, 2)
  T.eq(jobs[2].train.max_steps, 70)
  T.eq(jobs[2].checkpoint.load_path, "runs/trunk/checkpoints/step_60")
end)

T.test("batch_ramp gives phases of growing size, the last one open", function()
  local m = require("kf.schedules.batch_ramp")
  local phases = m.phases({ from = 4, to = 32, steps = 60, stages = 4, scale_lr = true })
  local sizes, ends = {}, {}
  for i, phase in ipairs(phases) do
    sizes[i], ends[i] = phase.batch_size, phase.until_step
  end
  T.eq(sizes, { 4, 8, 16, 32 })
  T.eq(ends, { 15, 30, 45 })
  T.near(phases[1].lr_scale, math.sqrt(4 / 32))
  T.near(phases[4].lr_scale, 1)
end)

T.test("options have defaults, bounds, and names that are checked at the caller's line", function()
  local early_stop = require("kf.hooks.early_stop")
  T.raises(function()
    early_stop.new({ patience = 0 })
  end, "early_stop: patience must be at least 1, got 0")
  T.raises(function()
    require("kf.hooks.lr_finder").new({ low = 0 })
  end, "lr_finder: low must be above 0, got 0")
  T.raises(function()
    require("kf.hooks.weight_ema").new({ decay = 1 })
  end, "weight_ema: decay must be below 1, got 1")
  T.raises(function()
    early_stop.new({ pateince = 2 })
  end, "early_stop: no option 'pateince'; have: patience, min_delta, save_best")
  T.raises(function()
    require("kf.hooks.loss_spike").new({ action = "explode" })
  end, "action must be one of skip, rollback")
end)

T.test("a plot has its range beside it", function()
  local lines = require("kf.plot").lines({ { 1, 2 }, { 10, 4 }, { 100, 3 }, { 5, 0 / 0 } }, { width = 21, height = 3, log_x = true })
  T.eq(lines[1], "         4 |          *          ")
  T.eq(lines[3], "         2 |*                    ")
  T.eq(lines[5], "            1                 100")
  T.eq(require("kf.plot").lines({}), { "(nothing to plot)" })
end)
