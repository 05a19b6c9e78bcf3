// Going on to the bit: every optimizer in every precision, each with every feature of a job in turn.

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/script_run.h"

using namespace kf::test;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

// Optimizers by their rate; each row takes the next feature, so that over the table every optimizer meets three of them. What `half` stops
// after step 3 goes on in the next process.
const char* const kTable = R"(
local optimizers = {
  { 'adamw', 3e-3 }, { 'lion', 3e-4 }, { 'schedule_free_adamw', 3e-3 }, { 'muon', 3e-3 }, { 'sgdm', 3e-2 }, { 'cautious_adamw', 3e-3 },
  { 'mars', 3e-3 }, { 'adopt', 3e-3 }, { 'adam_mini', 3e-3 }, { 'scion', 3e-4 }, { 'rmsprop', 3e-4 }, { 'kron', 1e-3 }, { 'soap', 3e-3 },
  { 'sophia_h', 1e-3 },
}
local features = {
  { 'plain', {} },
  { 'schedule', { scheduler = { name = 'wsd', warmup_steps = 2, stable_steps = 2, decay_steps = 2 } } },
  { 'phase', { phases = { { name = 'a', steps = 2 }, { name = 'b', lr_scale = 0.5 } } } },
  { 'packing', { data = { pack_sequences = true, pack_method = 'first_fit' } } },
  { 'moe', { model = { num_experts = 4, moe_top_k = 2, moe_router = 'sigmoid_topk', moe_bias_rate = 1e-3 } } },
  { 'lora', { adapter = { name = 'lora', rank = 4, dropout = 0.1 } } },
  { 'lua', {} },
}
-- A script's own state decides about the course: an update is left out where a number that it keeps says so.
local function counting()
  local n = 1
  return {
    name = 'counting',
    on_backward_end = function(ctx)
      n = (n * 7 + 3) % 11
      if n == 4 then ctx:skip_update('4') end
    end,
    state = function() return { n = n } end,
    load = function(state) n = state.n end,
  }
end

local mode = kf.args[1]
local number = 0
for turn, precision in ipairs { 'fp32', 'bf16', 'fp16' } do
  for _, optimizer in ipairs(optimizers) do
    number = number + 1
    local feature = features[(number + 2 * turn) % #features + 1]
    local name = optimizer[1] .. '-' .. precision .. '-' .. feature[1]
    local hooks = {}
    if feature[1] == 'lua' then hooks[#hooks + 1] = counting() end
    if mode == 'half' then
      hooks[#hooks + 1] = { name = 'stop', on_step_end = function(ctx) if ctx.step == 3 then ctx:stop('half') end end }
    end
    local table = { extends = 'toy.toml', eval = { enabled = false }, checkpoint = { interval = 100 },
      run = { name = name .. (mode == 'whole' and '-whole' or ''), go_on = mode == 'rest' },
      optimizer = { name = optimizer[1], lr = optimizer[2] }, train = { mixed_precision = precision, max_steps = 6 }, hooks = hooks }
    for section, keys in pairs(feature[2]) do
      table[section] = keys
    end
    kf.run(table)
  end
end
)";

}  // namespace

TEST_CASE("resume: every optimizer in every precision goes on to the bit, with every feature of a job in turn", "[resume]") {
  const ScriptRun run(kTable);
  for (const char* mode : {"whole", "half", "rest"}) {
    const Finished done = run.go({"--", mode});
    INFO(mode << "\n" << done.out << done.err);
    REQUIRE(done.status == 0);
  }
  int rows = 0;
  for (const auto& entry : fs::directory_iterator(run.toy / "runs")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("-whole")) {
      continue;
    }
    ++rows;
    INFO(name);
    CHECK(run.toy.series(name, "loss").size() == 6);
    CHECK(run.toy.series(name, "loss") == run.toy.series(name + "-whole", "loss"));
    for (const char* tensors : {"model.safetensors", "optimizer.safetensors"}) {
      INFO(tensors);
      const fs::path last = fs::path("checkpoints/step_6") / tensors;
      CHECK(run.toy.read(fs::path("runs") / name / last) == run.toy.read(fs::path("runs") / (name + "-whole") / last));
    }
  }
  CHECK(rows == 42);
}
