#include "bindings/script/script.h"

#include <algorithm>
#include <utility>

#include "bindings/context/hook_context.h"
#include "bindings/dist/dist.h"
#include "bindings/job/recipe.h"
#include "bindings/script/module.h"
#include "bindings/session/session.h"
#include "bindings/sweep/sweep.h"
#include "bindings/tensor/rng.h"
#include "bindings/vm/interrupt.h"
#include "bindings/vm/lua_stack.h"
#include "bindings/vm/stack.h"
#include "core/digest.h"
#include "core/running.h"
#include "core/text.h"

namespace kf {
namespace lua {
namespace {

std::string digest_of_text(const std::string& text) {
  Digest digest;
  digest.add(text);
  return digest.hex();
}

CodeFile code_file(const std::string& asked, const fs::path& path, const fs::path& script) {
  CodeFile out;
  out.asked = asked;
  const fs::path folder = fs::absolute(script).lexically_normal().parent_path();
  out.name = fs::absolute(path).lexically_normal().lexically_relative(folder).string();
  out.path = path;
  out.text = read_file(path);
  const CodeText code = code_text(out.text);
  out.functions = digest_of_text(code.functions);
  out.rest = digest_of_text(code.rest);
  return out;
}

/// require("kf"): the hooks of a script that never asked for it are given tensors all the same.
void load_library(lua_State* L) {
  lua_getglobal(L, "require");
  push(L, std::string_view("kf"));
  lua_call(L, 1, 0);
}

/// What the script returned, the value on top.
std::optional<config::Node> read_returned(lua_State* L, Session& session) {
  if (lua_isnil(L, -1)) {
    return std::nullopt;
  }
  if (LuaSweep* sweep = to_sweep(L, lua_gettop(L), session)) {
    session.sweep = sweep;
    return std::nullopt;
  }
  const SourceMap* map = session.source_of(session.script);
  const int line = map ? map->return_line() : 0;
  KF_CHECK(lua_istable(L, -1), Code::script, "{}:{}: a script returns a table (a job), a sweep or nothing, got {}", session.script, line,
           describe(L, -1));
  TableHooks hooks(session);
  config::Node node = read_recipe(L, lua_gettop(L), session, session.script, line, hooks);
  hooks.keep();
  return node;
}

}  // namespace

}  // namespace lua

Script::Script(Registries& registries, ScriptHost host, std::vector<std::string> arguments)
    : runtime_(lua::Runtime::create()), session_(std::make_unique<lua::Session>(registries, std::move(host), std::move(arguments))) {
  runtime_->protect([&](lua_State* L) {
    lua::Session::attach(L, session_.get());
    lua::preload_native(L);
    session_->context = lua::make_hook_context(L);
  });
}

Script::~Script() {
  for_each_kind(session_->registries, [](auto& registry) { registry.remove_scripted(); });
  lua::Session::attach(runtime_->state(), nullptr);
}

void Script::use_copies(const std::map<std::string, fs::path>& copies) { runtime_->set_copies(copies); }

std::optional<config::Node> Script::run_file(const fs::path& path) {
  const Phase phase(*this, path);
  session_->may_return = true;
  const lua::StackTop top(runtime_->state());
  const Running running(session_->script.c_str(), "the script itself");
  runtime_->load_file(path, session_->script);
  runtime_->call(0, 1);
  std::optional<config::Node> recipe;
  lua::Ref returned(runtime_->state());
  runtime_->protect([&](lua_State* L) {
    lua::load_library(L);
    returned.push(L);
    recipe = lua::read_returned(L, *session_);
  });
  return recipe;
}

Script::Phase::Phase(Script& script, const fs::path& path)
    : script_(script), outer_(std::exchange(script.session_->in_phase, true)), shown_(script.session_->script) {
  name(path.string());
}

Script::Phase::~Phase() {
  script_.session_->in_phase = outer_;
  if (outer_ || script_.session_->run_is_on()) {  // the code around it goes on
    name(shown_);
  }
}

void Script::Phase::name(const std::string& path) {
  script_.session_->script = path;
  script_.session_->sources.clear();
  script_.runtime_->set_search_path(fs::path(path).parent_path());
}

sweep::Definition* Script::sweep() { return session_->sweep != nullptr ? &session_->sweep->definition : nullptr; }

double Script::objective(const RunResult& result) {
  double value = 0;
  runtime_->protect([&](lua_State* L) { value = lua::objective_of(L, *session_->sweep, result); });
  return value;
}

std::vector<CodeFile> Script::code() const {
  std::vector<CodeFile> out;
  const fs::path script = session_->script;
  std::error_code ignored;
  if (fs::is_regular_file(script, ignored)) {  // not what a prompt or -e runs
    out.push_back(lua::code_file("", script, script));
  }
  for (const auto& [name, path] : runtime_->loaded_files()) {
    const CodeFile file = lua::code_file(name, path, script);
    const bool known = std::any_of(out.begin(), out.end(), [&](const CodeFile& other) { return other.name == file.name; });
    if (!known) {
      out.push_back(file);
    }
  }
  return out;
}

const std::vector<std::string>& Script::arguments() const { return session_->arguments; }

Script::RunScope::RunScope(Script& script, config::Config config)
    : script_(script),
      config_(std::move(config)),
      interrupt_(std::make_unique<lua::Interrupt>(*script.runtime_)),
      stack_(std::make_unique<lua::LuaStack>(*script.runtime_)),
      states_(std::make_unique<PartStates>()),
      draws_(std::make_unique<lua::RunDraws>(config_.train.seed)) {
  script.session_->job = &config_;
  script.session_->states = states_.get();
}

Script::RunScope::RunScope(Script& script, config::Config config, Beside /*beside*/)
    : script_(script),
      config_(std::move(config)),
      interrupt_(std::make_unique<lua::Interrupt>(*script.runtime_)),
      states_(std::make_unique<PartStates>()) {
  script.session_->job = &config_;
  script.session_->states = states_.get();
}

Script::RunScope::~RunScope() {
  lua::set_world(script_.runtime_->state(), nullptr);
  script_.session_->states = nullptr;
  script_.session_->job = nullptr;
  script_.session_->config = {};
}

}  // namespace kf
