// Going on to the bit: every optimizer in every precision, each with every feature of a job in turn.

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/script_run.h"

using namespace kf::test;

namespace {

namespace fs = std::filesystem;

// What dropout draws depends on the number of ranks, so it is left out where a precision is given. Optimizers by their rate and eps, at
// which the last bit of a sum decides nothing (tests/unit/layout/data_parallel_test.cpp); each row takes the next feature, so that over the
// table every optimizer meets three of them. What `half` stops after step 3 goes on in the next process.
const char* const kTable = R"(
local optimizers = {
  { 'adamw', 1e-3 }, { 'lion', 1e-3 }, { 'schedule_free_adamw', 1e-3 }, { 'muon', 1e-3 }, { 'sgdm', 1e-3 }, { 'cautious_adamw', 3e-4 },
  { 'mars', 1e-3 }, { 'adopt', 1e-3 }, { 'adam_mini', 1e-3 }, { 'scion', 1e-7 }, { 'rmsprop', 1e-4 }, { 'kron', 1e-3 },
  { 'soap', 1e-3, 1e-3 }, { 'sophia_h', 1e-4, 1e-2 },
}
local features = {
  { 'plain', {} },
  { 'schedule', { scheduler = { name = 'wsd', warmup_steps = 2, stable_steps = 2, decay_steps = 2 } } },
  { 'phase', { phases = { { name = 'a', steps = 2 }, { name = 'b', lr_scale = 0.5 } } } },
  { 'packing', { data = { pack_sequences = true, pack_method = 'first_fit' } } },
  { 'moe', { model = { num_experts = 4, moe_top_k = 2, moe_router = 'sigmoid_topk', moe_bias_rate = 1e-3 } } },
  { 'lora', { adapter = { name = 'lora', rank = 4, dropout = kf.args[2] and 0 or 0.1 } } },
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

local mode, precisions = kf.args[1], kf.args[2] and { kf.args[2] } or { 'fp32', 'bf16', 'fp16' }
local number = 0
for turn, precision in ipairs(precisions) do
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
      optimizer = { name = optimizer[1], lr = optimizer[2], eps = optimizer[3] or 1e-5, soap = { max_dim = 16, frequency = 10 } },
      train = { mixed_precision = precision, max_steps = 6, batch_size = 2, grad_accum_steps = 4 / kf.dist.world }, hooks = hooks }
    for section, keys in pairs(feature[2]) do
      table[section] = keys
    end
    kf.run(table)
  end
end
)";

/// Names of the runs of the table.
std::vector<std::string> names(const Toy& toy) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(toy / "runs")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("-whole")) {
      out.push_back(name);
    }
  }
  return out;
}

void train(const ScriptRun& run, const std::vector<std::string>& words) {
  const Finished done = run.go(words);
  INFO(words.back() << "\n" << done.out << done.err);
  REQUIRE(done.status == 0);
}

}  // namespace

TEST_CASE("resume: every optimizer in every precision goes on to the bit, with every feature of a job in turn", "[resume]") {
  const ScriptRun run(kTable);
  for (const char* mode : {"whole", "half", "rest"}) {
    train(run, {"--", mode});
  }
  CHECK(names(run.toy).size() == 42);
  for (const std::string& name : names(run.toy)) {
    INFO(name);
    CHECK(run.toy.series(name, "loss").size() == 6);
    CHECK(run.toy.series(name, "loss") == run.toy.series(name + "-whole", "loss"));
    for (const char* tensors : {"model.safetensors", "optimizer.safetensors"}) {
      INFO(tensors);
      const fs::path last = fs::path("checkpoints/step_6") / tensors;
      CHECK(run.toy.read(fs::path("runs") / name / last) == run.toy.read(fs::path("runs") / (name + "-whole") / last));
    }
  }
}

TEST_CASE("resume: every optimizer goes on with another number of ranks, up to the order of sums", "[resume][ranks]") {
  const ScriptRun run(kTable);
  train(run, {"--", "whole", "fp32"});
  train(run, {"--nproc", "2", "--", "half", "fp32"});
  train(run, {"--", "rest", "fp32"});
  CHECK(names(run.toy).size() == 14);
  for (const std::string& name : names(run.toy)) {
    const auto whole = run.toy.series(name + "-whole", "loss"), parts = run.toy.series(name, "loss");
    INFO(name);
    REQUIRE(parts.size() == 6);
    for (const auto& [step, loss] : whole) {
      INFO("step " << step);
      CHECK(std::stod(parts.at(step)) == Approx(std::stod(loss)).epsilon(1e-6));
    }
  }
}
