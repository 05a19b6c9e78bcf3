#include "bindings/script/module.h"

#include <algorithm>

#include "bindings/adapters/register.h"
#include "bindings/dist/dist.h"
#include "bindings/job/run.h"
#include "bindings/nn/layers.h"
#include "bindings/script/loaded_model.h"
#include "bindings/session/config_view.h"
#include "bindings/session/session.h"
#include "bindings/sweep/sweep.h"
#include "bindings/tensor/methods.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/operators.h"
#include "bindings/tensor/rng.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "config/schema/schema.h"
#include "core/log.h"
#include "core/running.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// log(level, line)
int write_log(lua_State* L) {
  const std::string level = check_text(L, 1, "kf.log", "a level");
  log::write(level == "warn"    ? log::Level::warn
             : level == "error" ? log::Level::error
                                : log::Level::info,
             check_text(L, 2, "kf.log", "a text"));
  return 0;
}

/// What `kf` does not hold as a plain field: kf.config, kf.mesh, and a helpful error for the rest. Arguments: kf, key.
int missing_field(lua_State* L) {
  const std::string key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : describe(L, 2);
  if (key == "config") {
    Session& session = Session::of(L);
    if (session.job == nullptr) {
      lua_pushnil(L);
      return 1;
    }
    if (!session.config) {
      push_view(L, job_tree(*session.job), "kf.config", 1);
      session.config = Ref(L);
    }
    session.config.push(L);
    return 1;
  }
  if (key == "mesh") {
    push_mesh(L);
    return 1;
  }
  if (const Operator* const op = find_operator(key)) {  // kf.softmax is kf.op.softmax, as torch.softmax is
    push_operator(L, *op);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
  }
  KF_CHECK(!dtype_named(key), Code::script, "kf has no field '{}'; types are strings: kf.zeros({ 2 }, { dtype = \"{}\" })", key, key);
  KF_CHECK(!has_method(L, key), Code::script, "kf has no field '{}'; it is a method: t:{}(...)", key, key);
  KF_CHECK(key != "cross_entropy" && key != "functional", Code::script, "kf has no field '{}'; it is kf.nn.{}", key,
           key == "functional" ? key : "functional." + key + "(...)");
  std::vector<std::string> names = {"config", "mesh"};
  for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
    names.emplace_back(lua_tostring(L, -2));
  }
  std::sort(names.begin(), names.end());
  fail(Code::script, "kf has no field '{}'{}", key, suggestion(key, names));
}

/// `kf` itself is not for assigning.
int refuse_assignment(lua_State* L) {
  fail(Code::script, "kf is read-only: cannot set '{}'; keep your own values in a local table",
       lua_isstring(L, 2) ? lua_tostring(L, 2) : describe(L, 2));
}

void push_arguments(lua_State* L, const Session& session) {
  lua_newtable(L);
  int number = 0;
  for (const std::string& argument : session.arguments) {
    push(L, argument);
    lua_rawseti(L, -2, ++number);
  }
}

/// Everything about tensors, into the table on top.
void open_tensor_library(lua_State* L) {
  open_numbers(L);
  open_data_pointer(L);
  open_tensors(L);
  add_factories(L);
  add_autograd(L);
  add_files(L);
  push_operators(L);
  lua_setfield(L, -2, "op");
  push_all(L);
  lua_setfield(L, -2, "all");
  push_rng(L);
  lua_setfield(L, -2, "rng");
  lua_pushcfunction(L, &guarded<make_float>);
  lua_setfield(L, -2, "float");
  lua_pushcfunction(L, &guarded<make_generator>);
  lua_setfield(L, -2, "generator");
}

/// config_words() -> the names of sections and keys, for completion.
int config_words(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  for (const config::Section& section : config::sections()) {
    push(L, std::string_view(section.name));
    lua_rawseti(L, -2, ++number);
  }
  for (const config::Row& row : config::rows()) {
    push(L, std::string_view(row.name));
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

int open_native(lua_State* L) {
  const Session& session = Session::of(L);
  const luaL_Reg functions[] = {{"log", &guarded<write_log>},
                                {"run", &guarded<run_job>},
                                {"config_words", &guarded<config_words>},
                                {"load_model", &guarded<load_model>},
                                {"loss", &guarded<native_loss>},
                                {"loss_names", &guarded<loss_names>},
                                {"sweep", &guarded<make_sweep>},
                                {"missing", &guarded<missing_field>},
                                {"refuse", &guarded<refuse_assignment>},
                                {nullptr, nullptr}};
  lua_newtable(L);
  luaL_register(L, nullptr, functions);
  set(L, "version", std::string_view(KF_VERSION));
  open_tensor_library(L);
  push_layers(L);
  lua_setfield(L, -2, "nn");
  push_register(L);
  lua_setfield(L, -2, "register");
  push_dist(L, session.host.rank, session.host.world);
  lua_setfield(L, -2, "dist");
  push_arguments(L, session);
  lua_setfield(L, -2, "args");
  return 1;
}

/// os.exit, which in a callback would end the process as if the run had succeeded, without saving.
int leave(lua_State* L) {
  const Session& session = Session::of(L);
  KF_CHECK(session.in_phase && !session.run_is_on(), Code::script,
           "os.exit in a callback would lose what is not saved yet; use ctx:stop(reason), or error(...)");
  const bool success = lua_isnoneornil(L, 1) || lua_toboolean(L, 1) != 0 ? lua_type(L, 1) != LUA_TNUMBER || lua_tonumber(L, 1) == 0 : false;
  if (session.may_return && !session.ran && success) {
    log::warn("{}: os.exit ends the script before it returned a job or called kf.run: nothing was trained", caller_position(L));
  }
  Running::forget();
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

/// os.setlocale, which may change everything but how numbers are written: libraries would put a decimal comma into files.
int set_locale(lua_State* L) {
  const std::string wanted = lua_isstring(L, 1) ? lua_tostring(L, 1) : "C";
  const std::string category = lua_isstring(L, 2) ? lua_tostring(L, 2) : "all";
  KF_CHECK(category != "numeric" || wanted == "C" || wanted == "POSIX", Code::script,
           "os.setlocale: numbers keep the point that files have: the category \"numeric\" stays \"C\", '{}' is not taken", wanted);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 1);
  std::setlocale(LC_NUMERIC, "C");
  if (category == "all" && !lua_isnil(L, -1)) {
    push(L, std::string_view(std::setlocale(LC_ALL, nullptr)));
  }
  return 1;
}

/// os.NAME becomes `function`, which has the original as its upvalue.
void wrap(lua_State* L, const char* name, lua_CFunction function) {
  lua_getglobal(L, "os");
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

}  // namespace

void preload_native(lua_State* L) {
  begin_rng();
  open_dist(L, Session::of(L).host.world);
  wrap(L, "exit", &guarded<leave>);
  wrap(L, "setlocale", &guarded<set_locale>);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, &guarded<open_native>);
  lua_setfield(L, -2, "kf.native");
  lua_pop(L, 2);
}

}  // namespace kf::lua
