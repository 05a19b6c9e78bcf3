#include "bindings/adapters/lua_hook.h"

#include <algorithm>

#include "bindings/nn/module_hooks.h"
#include "bindings/session/factory.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "core/log.h"
#include "core/running.h"
#include "core/text.h"
#include "core/trace.h"

namespace kf::lua {
namespace {

constexpr std::size_t index_of(Event event) { return static_cast<std::size_t>(event); }

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const std::string_view event : kEventNames) {
    names.push_back("on_" + std::string(event));
  }
  for (const char* name : {"name", "every", "ranks", "priority", "state", "load"}) {
    names.emplace_back(name);
  }
  return names;
}

[[noreturn]] void fail_unknown_key(const std::string& key, const std::string& where) {
  const std::vector<std::string> names = known_keys();
  const bool event = key.starts_with("on_");
  const bool prefix_forgotten = std::find(names.begin(), names.end(), "on_" + key) != names.end();
  const std::string hint = prefix_forgotten ? "; did you mean 'on_" + key + "'?" : suggestion(key, names);
  fail(Code::script, "{}: no {} '{}'{}", where, event ? "event" : "key", key, hint);
}

Ref read_function(lua_State* L, int index, const std::string& key, const std::string& where) {
  KF_CHECK(is_callable(L, index), Code::script, "{}: {} must be a function, got {}", where, key, describe(L, index));
  lua_pushvalue(L, index);
  return Ref(L);
}

std::int64_t read_every(lua_State* L, int index, const std::string& where) {
  const auto every = exact_integer(L, index);
  KF_CHECK(every && *every >= 1, Code::script, "{}: every must be a whole number from 1 on, got {}", where, describe(L, index));
  return *every;
}

/// "all", a rank, or a list of ranks.
std::optional<std::vector<std::int64_t>> read_ranks(lua_State* L, int index, const std::string& where) {
  if (lua_type(L, index) == LUA_TSTRING && lua_tostring(L, index) == std::string_view("all")) {
    return std::nullopt;
  }
  config::Node node = read_value(L, index, {where + ": ranks", {}});
  config::Array items = node.array() ? *node.array() : config::Array{node};
  std::vector<std::int64_t> ranks;
  for (const config::Node& item : items) {
    const auto* rank = std::get_if<std::int64_t>(&item.value);
    KF_CHECK(rank && *rank >= 0, Code::script, "{}: ranks must be \"all\", a rank or a list of ranks (from 0), got {}", where,
             describe(L, index));
    ranks.push_back(*rank);
  }
  return ranks;
}

bool read_on_error(lua_State* L, int index, const std::string& where) {
  const std::string word = check_text(L, index, where + ": on_error", "\"stop\" or \"warn\"");
  KF_CHECK(word == "stop" || word == "warn", Code::script, "{}: on_error must be \"stop\" or \"warn\", got '{}'", where, word);
  return word == "warn";
}

/// One key of the table; its value is on top.
void read_key(lua_State* L, const std::string& key, const std::string& where, HookTable& out) {
  const int value = lua_gettop(L);
  if (key == "on_error" && lua_type(L, value) == LUA_TSTRING) {  // a function under this key is the event
    out.warn_on_error = read_on_error(L, value, where);
    return;
  }
  for (std::size_t i = 0; i < kEventCount; ++i) {
    if (key.starts_with("on_") && key.substr(3) == kEventNames[i]) {
      out.events[i] = read_function(L, value, key, where);
      return;
    }
  }
  if (key == "name") {
    out.name = check_text(L, value, where, "name");
    KF_CHECK(!out.name.empty(), Code::script, "{}: name must not be empty", where);
  } else if (key == "every") {
    out.every = read_every(L, value, where);
  } else if (key == "priority") {
    const auto priority = exact_integer(L, value);
    KF_CHECK(priority, Code::script, "{}: priority must be a whole number, got {}", where, describe(L, value));
    out.priority = *priority;
  } else if (key == "ranks") {
    out.ranks = read_ranks(L, value, where);
  } else if (key != "state" && key != "load") {  // those are read together
    fail_unknown_key(key, where);
  }
}

bool is_hook_table(lua_State* L, int index) { return lua_istable(L, index); }

std::unique_ptr<Hook> make_hook(std::shared_ptr<const HookTable> table, const std::string& name, const std::string& where,
                                Session& session) {
  const std::string own = table->name.empty() ? name : table->name;
  return std::make_unique<LuaHook>(own, where, std::move(table), session);
}

/// What a factory made.
std::shared_ptr<const HookTable> read_made(const Ref& made, const std::string& where) {
  std::shared_ptr<const HookTable> table;
  made.runtime().protect([&](lua_State* L) {
    made.push(L);
    table = std::make_shared<HookTable>(read_hook_table(L, 1, where));
  });
  return table;
}

}  // namespace

HookTable read_hook_table(lua_State* L, int index, const std::string& where) {
  HookTable out;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script,
             "{}: a hook is a table of events (on_step_end = function(ctx) ... end), it has the key {}", where, describe(L, -2));
    read_key(L, lua_tostring(L, -2), where, out);
  }
  const bool any = std::any_of(out.events.begin(), out.events.end(), [](const Ref& ref) { return static_cast<bool>(ref); });
  KF_CHECK(any, Code::script, "{}: the hook has no event; write on_step_end = function(ctx) ... end", where);
  out.state = read_state_functions(L, index, where);
  return out;
}

LuaHook::LuaHook(std::string name, std::string where, std::shared_ptr<const HookTable> table, Session& session)
    : name_(std::move(name)), where_(std::move(where)), table_(std::move(table)), slot_(*session.context.slot) {
  const std::int64_t rank = session.host.rank;
  here_ = !table_->ranks || std::find(table_->ranks->begin(), table_->ranks->end(), rank) != table_->ranks->end();
  lua_State* L = session.context.userdata.runtime().state();
  session.context.userdata.push(L);
  context_ = Ref(L);
}

LuaHook::~LuaHook() {
  for (const auto& hooks : module_hooks_) {
    hooks->remove();  // the script may still hold their handles
  }
}

bool LuaHook::wants(Event event, std::int64_t step) const {
  if (!here_ || !table_->events[index_of(event)]) {
    return false;
  }
  switch (event) {
    case Event::step_begin:
    case Event::micro_end:
    case Event::backward_end: return (step + 1) % table_->every == 0;
    case Event::step_end: return step % table_->every == 0;
    default: return true;
  }
}

void LuaHook::call(Event event, HookContext& context) {
  try {
    run(event, context);
  } catch (const Error& error) {
    const std::string line = format("in {}, on_{} at step {}", where_, kEventNames[index_of(event)], context.state.step);
    if (!table_->warn_on_error) {
      rethrow_from(error, where_, line);
    }
    log::warn("{}\n  {}; the hook goes on: its on_error is \"warn\"", error.what(), line);
  }
}

void LuaHook::run(Event event, HookContext& context) {
  const Ref& function = table_->events[index_of(event)];
  Runtime& runtime = function.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const LentContext lent(slot_, context, event, &module_hooks_);
  const Running running(where_.c_str(), kEventNames[index_of(event)].data(), context.state.step);
  const TraceRange range(TraceKind::call, where_.c_str(), kEventNames[index_of(event)].data());
  function.push(L);
  context_.push(L);
  int arguments = 1;
  if (event == Event::eval_end && context.eval) {
    push_cached_eval(L, lua_gettop(L), slot_, *context.eval);
    ++arguments;
  } else if (event == Event::checkpoint_save || event == Event::checkpoint_load) {
    push(L, context.path);
    ++arguments;
  } else if (event == Event::error || event == Event::train_end) {
    push(L, context.message);
    ++arguments;
  } else if (event == Event::phase_change) {
    context.phase.empty() ? lua_pushnil(L) : push(L, context.phase);  // as ctx.phase
    ++arguments;
  }
  runtime.call(arguments, 0);
}

config::Node LuaHook::state() { return table_->state ? table_->state.save(where_) : config::Node(); }

void LuaHook::load(const config::Node& state) {
  if (table_->state && !state.is_null()) {
    table_->state.restore(state, where_);
  }
}

void add_hook(lua_State* L, Session& session, config::PartInfo info) {
  if (lua_istable(L, 2)) {
    add_hook_table(L, 2, session, std::move(info));
    return;
  }
  KF_CHECK(lua_isfunction(L, 2), Code::script, "kf.register.hook: expected a table or function, got {}", describe(L, 2));
  const auto factory = take_factory(L, 2, "hook");
  const std::string where = part_text("hook", info);
  const std::string name = info.name;
  session.registries.hook.add(std::move(info), [factory, where, name, &session](const PartArgs& args) {
    return make_hook(read_made(build(*factory, where, args, {}, "a hook table", is_hook_table), where), name, where, session);
  });
}

void add_hook_table(lua_State* L, int index, Session& session, config::PartInfo info) {
  const std::string where = part_text("hook", info);
  // Read here, where the script's line is known; the hooks of all its runs share what was read.
  const auto table = std::make_shared<const HookTable>(read_hook_table(L, index, where));
  const std::string name = info.name;
  session.registries.hook.add(std::move(info),
                              [table, where, name, &session](const PartArgs&) { return make_hook(table, name, where, session); });
}

}  // namespace kf::lua
