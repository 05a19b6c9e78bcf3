// Schedules: native and Lua ones are the same to their callers.
#include <cmath>

#include "builtins/builtins.h"
#include "fixture.h"

using namespace kf;
using kf::test::error_of;
using kf::test::first_line;
using kf::test::ScriptFixture;

namespace {

constexpr const char* kLinear = R"(local kf = require("kf")
kf.register.scheduler("lua_linear", function(a)
  local warmup, floor = a.config.scheduler.warmup_steps, a.config.scheduler.min_lr_ratio
  local total = a.max_steps
  return function(step)
    if step < warmup then
      return step / warmup
    end
    local progress = math.min((step - warmup) / math.max(total - warmup, 1), 1)
    return floor + (1 - floor) * (1 - progress)
  end
end)
)";

/// The linear schedule, from C++ or from Lua.
struct Fixture {
  explicit Fixture(const std::string& origin) {
    scripted.registries = native_registries();
    scripted.config.scheduler.warmup_steps = 10;
    scripted.config.scheduler.min_lr_ratio = 0.1;
    scripted.run(kLinear);
    schedule = scripted.schedule(origin == "native" ? "linear" : "lua_linear", 110);
  }
  double factor(std::int64_t step) const { return schedule->factor(step); }

  ScriptFixture scripted;
  std::unique_ptr<Schedule> schedule;
};

std::string factor_error(const std::string& factory, std::int64_t step = 3) {
  ScriptFixture f;
  f.run("local kf = require('kf')\nkf.register.scheduler('s', " + factory + ")");
  return error_of(f, [&] { f.schedule("s")->factor(step); });
}

}  // namespace

TEST_CASE("schedule: warmup rises linearly to one, then falls to the floor", "[schedule]") {
  const std::string origin = GENERATE("native", "lua");
  CAPTURE(origin);
  Fixture schedule(origin);
  CHECK(schedule.factor(0) == 0.0);
  CHECK(schedule.factor(5) == Approx(0.5));
  CHECK(schedule.factor(10) == Approx(1.0));
  CHECK(schedule.factor(60) == Approx(0.55));
  CHECK(schedule.factor(110) == Approx(0.1));
  CHECK(schedule.factor(500) == Approx(0.1));
}

TEST_CASE("schedule: options reach the factory", "[schedule]") {
  ScriptFixture f;
  f.run("require('kf').register.scheduler('s', function(a) local v = a.options.value return function() return v end end)");
  f.config.parts["scheduler.s"]["value"] = config::Node(0.25);
  CHECK(f.schedule("s")->factor(7) == 0.25);
}

TEST_CASE("schedule: a factory that returns something else is an error of the script", "[schedule]") {
  CHECK(first_line(factor_error("function() return 0.5 end")) ==
        "recipe.lua:2: scheduler 's' must return a function(step) that gives the factor, got number 0.5");
  CHECK(first_line(factor_error("function() end")) ==
        "recipe.lua:2: scheduler 's' must return a function(step) that gives the factor, got nil");
}

TEST_CASE("schedule: a wrong factor is an error that names the step", "[schedule]") {
  const std::string wrong = GENERATE("nil", "'x'", "0/0", "1/0", "-0.5", "true");
  CAPTURE(wrong);
  const std::string text = first_line(factor_error("function() return function() return " + wrong + " end end"));
  CHECK(text.starts_with("recipe.lua:2: scheduler 's' must return a finite number from 0 on, the factor of optimizer.lr; got "));
  CHECK(text.ends_with(" at step 3"));
}

TEST_CASE("schedule: an error inside shows the script's line first, then where it was called", "[schedule]") {
  const std::string text = factor_error("function()\n  return function(step)\n    error('no ' .. step)\n  end\nend", 12);
  CHECK(text == "recipe.lua:4: no 12\n  in recipe.lua:2: scheduler 's' at step 12");
}

TEST_CASE("schedule: an error inside the factory says so", "[schedule]") {
  const std::string text = factor_error("function(a)\n  return a.config.schedular.warmup_steps\nend");
  CHECK(text ==
        "recipe.lua:3: config has no field 'schedular'; did you mean 'scheduler'?\n  in the factory of recipe.lua:2: scheduler 's'");
}

TEST_CASE("schedule: it outlives its script", "[schedule]") {
  ScriptFixture f;
  f.run("require('kf').register.scheduler('s', function() return function(step) return step / 8 end end)");
  const auto schedule = f.schedule("s");
  f.script.reset();
  CHECK(schedule->factor(4) == 0.5);
}
