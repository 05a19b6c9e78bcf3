#include "bindings/adapters/lua_run_parts.h"

#include <algorithm>

#include "bindings/adapters/callback.h"
#include "bindings/adapters/kept_state.h"
#include "bindings/context/hook_context.h"
#include "bindings/context/rows.h"
#include "bindings/session/factory.h"
#include "bindings/vm/stack.h"
#include "config/plan/plan.h"
#include "core/text.h"
#include "metrics/names/names.h"
#include "metrics/sink.h"
#include "model/own_draws.h"
#include "model/parameter.h"
#include "train/loop/metric.h"

namespace kf::lua {
namespace {

bool is_table(lua_State* L, int index) { return lua_istable(L, index); }

/// Every key of the table on top must be one of `names`.
void check_names(lua_State* L, const std::vector<std::string>& names, const std::string& where) {
  const int table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(std::find(names.begin(), names.end(), key) != names.end(), Code::script, "{}: no key '{}'{}", where, key,
             suggestion(key, names));
  }
}

class LuaMetric final : public Metric {
 public:
  LuaMetric(std::string name, std::string where, const Ref& table, Session& session)
      : name_(std::move(name)), where_(std::move(where)), slot_(*session.context.slot) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      check_names(L, {"every", "compute", "state", "load"}, where_);
      kept_ = keep_state_of(L, lua_gettop(L), where_);
      compute_ = take_method(L, "compute", where_);
      lua_getfield(L, -1, "every");
      if (!lua_isnil(L, -1)) {
        const auto every = exact_integer(L, -1);
        KF_CHECK(every && *every >= 1, Code::script, "{}: every must be a whole number from 1 on, got {}", where_, describe(L, -1));
        every_ = *every;
      }
      session.context.userdata.push(L);
      context_ = Ref(L);
    });
  }

  std::int64_t every() const override { return every_; }
  Values compute(HookContext& context) override {
    const LentContext lent(slot_, context, Event::step_end);
    return call_part(
        compute_, where_, format(", compute() at step {}", context.state.step),
        [&](lua_State* L) {
          context_.push(L);
          return 1;
        },
        [&](lua_State* L) { return read(L); });
  }

 private:
  Values read(lua_State* L) const {
    if (lua_type(L, -1) == LUA_TNUMBER) {
      return {{name_, lua_tonumber(L, -1)}};
    }
    KF_CHECK(lua_istable(L, -1), Code::script, "{}: compute() must return a number or a table of name = number, got {}", where_,
             describe(L, -1));
    Values values = read_values(L, -1, where_ + ": compute()");
    for (auto& [key, value] : values) {
      key = name_ + "/" + key;
    }
    return values;
  }

  std::string name_;
  std::string where_;
  std::int64_t every_ = 0;
  Ref compute_;
  Ref context_;
  PartStates::Handle kept_;
  ContextSlot& slot_;
};

class LuaSink final : public Sink {
 public:
  LuaSink(std::string where, const Ref& table) : where_(std::move(where)) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      check_names(L, {"begin", "write", "eval", "saved", "rewind", "close", "state", "load"}, where_);
      kept_ = keep_state_of(L, lua_gettop(L), where_);
      begin_ = take_method(L, "begin", where_, true);
      write_ = take_method(L, "write", where_);
      eval_ = take_method(L, "eval", where_, true);
      saved_ = take_method(L, "saved", where_, true);
      rewind_ = take_method(L, "rewind", where_, true);
      close_ = take_method(L, "close", where_, true);
    });
  }

  void begin(const RunInfo& run) override {
    step_ = run.completed_steps;
    tell(begin_, ", begin()", [&run](lua_State* L) { return push_run(L, run); });
  }
  void row(const StepRow& row) override { write(write_, ", write()", row); }
  void eval(const EvalResult& result) override {
    if (eval_) {
      write(eval_, ", eval()", result);
    } else {
      write(write_, ", write()", result);
    }
  }
  void saved(std::int64_t step, const fs::path& checkpoint) override {
    step_ = step;
    tell(saved_, format(", saved() at step {}", step), [&](lua_State* L) {
      lua_pushnumber(L, static_cast<double>(step));
      push(L, std::string_view(checkpoint.native()));
      return 2;
    });
  }
  void rewind(std::int64_t step) override {
    step_ = step;
    tell(rewind_, format(", rewind() to step {}", step), [step](lua_State* L) {
      lua_pushnumber(L, static_cast<double>(step));
      return 1;
    });
  }
  void end(const RunResult& result) override {
    tell(close_, ", close()", [&result](lua_State* L) {
      push_result(L, result);
      return 1;
    });
  }

 private:
  static int push_run(lua_State* L, const RunInfo& run) {
    lua_createtable(L, 0, 7);
    set(L, "id", std::string_view(run.id));
    set(L, "name", std::string_view(run.plan.name));
    set(L, "dir", std::string_view(run.plan.dir.native()));
    set(L, "max_steps", static_cast<double>(run.plan.max_steps));
    set(L, "completed_steps", static_cast<double>(run.completed_steps));
    set(L, "n_params", static_cast<double>(run.parameters));
    set(L, "job_toml", std::string_view(run.job_toml));
    return 1;
  }

  template <class Row>
  void write(const Ref& method, const char* what, const Row& row) {
    step_ = row.step;
    tell(method, format("{} at step {}", what, row.step), [&row](lua_State* L) {
      push_row(L, row);
      return 1;
    });
  }

  /// Calls a function that the script may have left out. Training is the same with any metrics.log_interval: what it draws is its own.
  template <class Push>
  void tell(const Ref& method, const std::string& what, Push&& arguments) {
    if (method) {
      const OwnDraws draws(at::kCPU, static_cast<std::uint64_t>(step_), where_);
      call_part(method, where_, what, arguments, [](lua_State*) { return true; });
    }
  }

  std::string where_;
  std::int64_t step_ = 0;  // of the last event, for the draws
  Ref begin_;
  Ref write_;
  Ref eval_;
  Ref saved_;
  Ref rewind_;
  Ref close_;
  PartStates::Handle kept_;
};

bool call_strategy(const Ref& function, const std::string& where, std::int64_t step) {
  return call_part(
      function, where, format(" at step {}", step),
      [&](lua_State* L) {
        lua_pushnumber(L, static_cast<double>(step));
        return 1;
      },
      [&](lua_State* L) {
        KF_CHECK(lua_isboolean(L, -1), Code::script, "{} must return true or false, got {} at step {}", where, describe(L, -1), step);
        return lua_toboolean(L, -1) != 0;
      });
}

ParallelPlan read_plan(lua_State* L, const std::string& where) {
  static const std::vector<std::string> words(std::begin(kSplitNames), std::end(kSplitNames));
  const int table = lua_gettop(L);
  ParallelPlan plan;
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "{}: expected name patterns as keys, got {}", where, describe(L, -2));
    const std::string pattern = lua_tostring(L, -2);
    const std::string word = check_text(L, -1, format("{}: '{}'", where, pattern), "how to split");
    KF_CHECK(std::find(words.begin(), words.end(), word) != words.end(), Code::script, "{}: '{}' = '{}'{}", where, pattern, word,
             suggestion(word, words));
    plan.emplace_back(pattern, word);
  }
  std::sort(plan.begin(), plan.end());
  return plan;
}

}  // namespace

void add_metric(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("metric", info);
  const auto factory = take_factory(L, 2, "metric");
  const std::string name = info.name;
  KF_CHECK(!is_row_key(name), Code::script, "{}: '{}' is a name that rows have themselves (docs/metrics.md lists them); choose another",
           where, name);
  session.registries.metric.add(std::move(info), [factory, where, name, &session](const PartArgs& args) -> std::unique_ptr<Metric> {
    const Ref table = build(*factory, where, args, {}, "a table { every = n, compute = function(ctx) ... end }", is_table);
    return std::make_unique<LuaMetric>(name, where, table, session);
  });
}

void add_sink(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("sink", info);
  const auto factory = take_factory(L, 2, "sink");
  session.registries.sink.add(std::move(info), [factory, where](const PartArgs& args, const fs::path& dir) -> std::unique_ptr<Sink> {
    const auto fill = [&](lua_State* state) { set(state, "dir", std::string_view(dir.native())); };
    const Ref table = build(*factory, where, args, fill, "a table { write = function(row) ... end }", is_table);
    return std::make_unique<LuaSink>(where, table);
  });
}

void add_ckpt_strategy(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("ckpt_strategy", info);
  const auto factory = take_factory(L, 2, "ckpt_strategy");
  session.registries.ckpt_strategy.add(std::move(info), [factory, where](const PartArgs& args) -> CheckpointStrategy {
    const auto part =
        std::make_shared<const FunctionPart>(build_function(*factory, where, args, {}, "a function(step) that gives true or false"));
    return [part, where](std::int64_t, std::int64_t, std::int64_t step) { return call_strategy(part->function, where, step); };
  });
}

void add_parallel_plan(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("parallel_plan", info);
  const auto factory = take_factory(L, 2, "parallel_plan");
  session.registries.parallel_plan.add(std::move(info), [factory, where](const PartArgs& args) {
    const Ref table = build(*factory, where, args, {}, "a table of name pattern = how to split", is_table);
    ParallelPlan plan;
    table.runtime().protect([&](lua_State* state) {
      table.push(state);
      plan = read_plan(state, where);
    });
    return plan;
  });
}

}  // namespace kf::lua
