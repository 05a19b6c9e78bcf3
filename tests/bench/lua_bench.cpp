#include "bench/lua_bench.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "bench/compare.h"
#include "bench/goals.h"
#include "bindings/script/script.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "data/loader/loader.h"
#include "model/transformer/build.h"
#include "optim/adamw.h"
#include "optim/schedule.h"
#include "registry/registries.h"
#include "train/loop/hook.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/stepper.h"

namespace kf::bench {
namespace {

constexpr const char* kScript = R"(
local kf = require("kf")
local nn = kf.nn

-- One call of schedule(step) is 1000 operators.
kf.register.scheduler("adds", function()
  local a, b = kf.ones({ 2 }), kf.ones({ 2 })
  local add = kf.op.add
  return function()
    for _ = 1, 1000 do
      add(a, b)
    end
    return 1
  end
end)
kf.register.scheduler("methods", function()
  local x = kf.ones({ 2, 3 })
  return function()
    for _ = 1, 1000 do
      x:view(3, 2)
    end
    return 1
  end
end)
kf.register.scheduler("keywords", function()
  local x = kf.ones({ 2, 3 })
  return function()
    for _ = 1, 1000 do
      x:sum({ dim = 1, keepdim = true })
    end
    return 1
  end
end)
kf.register.scheduler("places", function()
  local x = kf.ones({ 2, 3 })
  local dims = { 1 }
  return function()
    for _ = 1, 1000 do
      x:sum(dims, true)
    end
    return 1
  end
end)
kf.register.scheduler("line", function()
  return function(step)
    return step / 100
  end
end)
kf.register.hook("reads", {
  on_step_end = function(ctx)
    return ctx.lr * ctx.step + ctx.tokens
  end,
})
kf.register.block("lua_llama", function(a)
  local m = a.config.model
  return nn.module({
    attention_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    attention = nn.attention(m, { layer = a.layer }),
    mlp_norm = nn.norm(m.norm_type, m.dim, m.norm_eps),
    mlp = nn.mlp(m.activation, m.dim, a.hidden_dim),
    forward = function(self, x, ctx)
      local h = x + self.attention(self.attention_norm(x), ctx)
      return h + self.mlp(self.mlp_norm(h))
    end,
  })
end)
)";

/// Nanoseconds of one of `times` in `body`, the fastest of several rounds.
double nanoseconds(int times, const std::function<void()>& body) {
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times);
  }
  return best;
}

void bench_operators(const Schedule& adds, const Schedule& methods, Goals& goals) {
  const at::Tensor a = at::ones({2});
  const at::Tensor b = at::ones({2});
  const double native = nanoseconds(1000, [&] {
    for (int i = 0; i < 1000; ++i) {
      at::add(a, b);
    }
  });
  const double lua = nanoseconds(1000, [&] { adds.factor(0); });
  std::printf("  operator add of 2 elements: %.0f ns from Lua, %.0f ns from C++: %.0f ns extra\n", lua, native, lua - native);
  goals.at_most("an operator from Lua, beyond C++", lua - native, 200, "ns");
  const at::Tensor x = at::ones({2, 3});
  const double view = nanoseconds(1000, [&] {
    for (int i = 0; i < 1000; ++i) {
      x.view({3, 2});
    }
  });
  const double method = nanoseconds(1000, [&] { methods.factor(0); });
  std::printf("  method x:view(3, 2): %.0f ns from Lua, %.0f ns from C++: %.0f ns extra\n", method, view, method - view);
  goals.at_most("a method from Lua, beyond C++", method - view, 200, "ns");
}

/// The same call by place and by keywords: the table is made each time, as scripts write it.
void bench_keywords(const Schedule& keywords, const Schedule& places) {
  const at::Tensor x = at::ones({2, 3});
  const double native = nanoseconds(1000, [&] {
    for (int i = 0; i < 1000; ++i) {
      at::sum(x, {1}, true);
    }
  });
  const double named = nanoseconds(1000, [&] { keywords.factor(0); });
  const double placed = nanoseconds(1000, [&] { places.factor(0); });
  std::printf("  x:sum{ dim = 1, keepdim = true }: %.0f ns, x:sum({ 1 }, true): %.0f ns, %.0f ns from C++\n", named, placed, native);
}

void bench_callbacks(Hook& hook, const Schedule& line, Goals& goals) {
  HookContext context;
  context.lr = 1e-3;
  const double call = nanoseconds(100000, [&] {
    for (int i = 0; i < 100000; ++i) {
      context.state.step = i;
      hook.call(Event::step_end, context);
    }
  });
  const double schedule = nanoseconds(100000, [&] {
    for (int i = 0; i < 100000; ++i) {
      line.factor(i);
    }
  });
  std::printf("  hook with three reads: %.0f ns; schedule: %.0f ns\n", call, schedule);
  goals.at_most("a hook in Lua with three reads", call, 80, "ns");
}

/// A model, its optimizer and its stepper.
struct Trainee {
  Trainee(const Registries& registries, const std::string& block)
      : config(load(registries, block)),
        model(build_model(config, registries)),
        optimizer((materialize(*model, at::kCPU, at::kFloat, 1), decay_groups(model->parameters(), 0.1)), {}),
        objective(loss),
        stepper(*model, optimizer, objective, {}),
        loader(make_train_loader(config, {})) {}

  static config::Config load(const Registries& registries, const std::string& block) {
    config::Request request;
    request.overrides = {
        "--model.dim=256",         "--model.n_layers=4",  "--model.n_heads=8",    "--model.n_kv_heads=4",         "--model.vocab_size=512",
        "--model.max_seq_len=256", "--train.seq_len=256", "--train.batch_size=8", "--train.mixed_precision=fp32", "--model.block=" + block};
    return config::load_or_fail(request, registries.catalog()).config;
  }

  config::Config config;
  std::shared_ptr<Model> model;
  AdamW optimizer;
  CrossEntropy loss;
  Language objective;
  Stepper stepper;
  std::unique_ptr<Loader> loader;
  std::int64_t step = 0;
};

}  // namespace

void bench_lua(Goals& goals) {
  Registries registries = native_registries();
  Script script(registries, {}, {});
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "kf_bench.lua";
  std::ofstream(file) << kScript;
  script.run_file(file);
  std::filesystem::remove(file);
  const config::Config config;
  const auto schedule = [&](const char* name) { return make_part(registries.scheduler, name, config, registries, ScheduleSpan{100}); };
  bench_operators(*schedule("adds"), *schedule("methods"), goals);
  bench_keywords(*schedule("keywords"), *schedule("places"));
  bench_callbacks(*make_part(registries.hook, "reads", config, registries), *schedule("line"), goals);
  Trainee lua(registries, "lua_llama");
  Trainee native(registries, "standard");
  const double ratio = compare("model step", {"blocks in Lua", [&] { lua.stepper.run(*lua.loader, lua.step++, 1e-4); }},
                               {"native blocks", [&] { native.stepper.run(*native.loader, native.step++, 1e-4); }}, 5);
  goals.seen("a step with blocks in Lua / native blocks", ratio, "x");
}

}  // namespace kf::bench
