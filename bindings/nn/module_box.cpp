#include "bindings/nn/module_box.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <map>
#include <new>
#include <set>

#include "bindings/nn/lua_module.h"
#include "bindings/nn/module_hooks.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "core/log.h"
#include "model/model.h"

namespace kf::lua {
namespace {

constexpr char kModule[] = "kf.nn.module";        // metatable of tables given to nn.module
constexpr char kNative[] = "kf.nn.native";        // metatable of native modules
constexpr char kParameter[] = "kf.nn.parameter";  // metatable of parameters before they have a module
constexpr char kMethods[] = "kf.nn.methods";
const char kHalf = 0;  // table[&kHalf]: the native half

template <class Box>
Box* box_of(lua_State* L, int index) {
  void* place = lua_touserdata(L, index);
  if (place == nullptr || lua_objlen(L, index) != sizeof(Box)) {
    return nullptr;
  }
  auto* box = static_cast<Box*>(place);
  return box->magic == Box::kMagic ? box : nullptr;
}

/// The half of the table at `index`; null when it is no module.
ModuleBox* half_of(lua_State* L, int index) {
  if (!lua_istable(L, index)) {
    return nullptr;
  }
  lua_pushvalue(L, index);
  lua_pushlightuserdata(L, const_cast<char*>(&kHalf));
  lua_rawget(L, -2);
  ModuleBox* box = box_of<ModuleBox>(L, -1);
  lua_pop(L, 2);
  return box;
}

Module& self(lua_State* L, const char* method) {
  const std::shared_ptr<Module> module = module_at(L, 1);
  KF_CHECK(module != nullptr, Code::script, "m:{}: call it with a colon on a module, got {}", method, describe(L, 1));
  return *module;  // the value at 1 keeps it alive
}

int native_call(lua_State* L) {
  ModuleBox* box = box_of<ModuleBox>(L, 1);
  KF_CHECK(box != nullptr && box->call != nullptr, Code::script, "this value cannot be called as a module");
  ensure_storage(*box->module);
  try {
    return box->call(L, *box->module);
  } catch (const c10::Error& error) {
    std::string text = error.what_without_backtrace();
    fail(Code::script, "nn.{}: {}\n  given {}", box->kind, text.substr(0, text.find("\nException raised from ")), describe_any(L, 2));
  }
}

int native_index(lua_State* L) {
  const std::string name = check_text(L, 2, "a module", "a field");
  if (push_module_method(L, name.c_str())) {
    return 1;
  }
  const ModuleBox& box = *box_of<ModuleBox>(L, 1);
  if (const lua_CFunction method = box.methods != nullptr ? box.methods(name) : nullptr) {
    lua_pushcfunction(L, method);
    return 1;
  }
  if (name == "training") {
    lua_pushboolean(L, box.module->training());
    return 1;
  }
  std::vector<std::string> names = {"training"};
  for (const auto& [own, parameter] : box.module->own_parameters()) {
    if (own == name) {
      push_value(L, *parameter, name);
      return 1;
    }
    names.push_back(own);
  }
  for (const auto& [own, child] : box.module->children()) {
    KF_CHECK(own != name, Code::script, "nn.{}: its part '{}' cannot be had alone; m:parameters() is a table of all weights by name",
             box.kind, name);
    names.push_back(own);
  }
  for (const char* method : {"parameters", "num_parameters", "train", "eval"}) {
    names.emplace_back(method);
  }
  const bool torch = name == "named_parameters" || name == "state_dict";
  fail(Code::script, "nn.{} has no field '{}'{}", box.kind, name,
       torch ? "; m:parameters() is a table of all weights by name" : suggestion(name, names));
}

int native_text(lua_State* L) {
  const ModuleBox& box = *box_of<ModuleBox>(L, 1);
  std::vector<std::string> words;
  for (const auto& [name, parameter] : box.module->named_parameters()) {
    std::vector<std::string> sizes;
    for (const std::int64_t size : parameter->shape) {
      sizes.push_back(to_text(size));
    }
    const std::string shard = parameter->split_hint ? " " + std::string(kSplitNames[static_cast<std::size_t>(parameter->split)]) : "";
    words.push_back(name + " (" + join(sizes, ", ") + ")" + shard);
  }
  push(L, std::string_view("nn." + std::string(box.kind) + (words.empty() ? "" : ": " + join(words, ", "))));
  return 1;
}

void push_native_metatable(lua_State* L) {
  if (luaL_newmetatable(L, kNative) == 0) {
    return;
  }
  const luaL_Reg functions[] = {{"__call", &guarded<native_call>},
                                {"__index", &guarded<native_index>},
                                {"__tostring", &guarded<native_text>},
                                {"__gc", collect<ModuleBox>},
                                {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
  set(L, "__metatable", std::string_view("module"));
}

// --- nn.module ---

std::vector<std::string> sorted_keys(lua_State* L, int table) {
  std::vector<std::string> keys;
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING) {
      keys.emplace_back(lua_tostring(L, -2));
    } else {
      KF_CHECK(module_at(L, lua_gettop(L)) == nullptr && parameter_at(L, lua_gettop(L)) == nullptr, Code::script,
               "nn.module: modules and parameters have names, got one under the key {}; nn.list holds several", describe(L, -2));
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// A plain list of modules: children "0", "1", ... of a folder; null when it is something else.
std::shared_ptr<LuaModule> list_of_modules(lua_State* L, int index, const std::string& name) {
  if (!lua_istable(L, index)) {
    return nullptr;
  }
  const int length = static_cast<int>(lua_objlen(L, index));
  std::shared_ptr<LuaModule> group;
  bool others = false;
  for (int i = 1; i <= length; ++i) {
    lua_rawgeti(L, index, i);
    const int value = lua_gettop(L);
    KF_CHECK(parameter_at(L, value) == nullptr, Code::script, "nn.module: parameters are fields of their own, '{}' holds one in a list",
             name);
    if (const std::shared_ptr<Module> item = module_at(L, value)) {
      group = group ? group : std::make_shared<LuaModule>();
      group->add_child(std::to_string(i - 1), item);
    } else {
      others = true;
    }
    lua_pop(L, 1);
  }
  KF_CHECK(!group || !others, Code::script, "nn.module: the list '{}' mixes modules and other values", name);
  return group;
}

/// A tensor that is neither parameter nor buffer: most often a weight whose author took it for one. Said once for each place.
void say_plain_tensor(lua_State* L, const at::Tensor& tensor, const std::string& name) {
  KF_CHECK(!tensor.requires_grad(), Code::script,
           "nn.module: '{}' is a tensor that wants gradients, and nobody would train it: nn.parameter(t) makes a weight of it", name);
  static std::set<std::string> said;
  std::string place = caller_position(L);
  if (place.empty()) {  // a tail call leaves no place of its own
    lua_getfield(L, 1, "forward");
    place = lua_isfunction(L, -1) ? definition_position(L, -1) : "";
    lua_pop(L, 1);
  }
  if (said.insert(place + name).second) {
    log::warn(
        "{}: nn.module: '{}' is a plain tensor, neither trained nor saved; nn.parameter(t) makes a weight of it, nn.buffer(t) is saved",
        place, name);
  }
}

/// One field, its value on top; true when it must leave the table because the native half has it now.
bool adopt_field(lua_State* L, LuaModule& module, const std::string& name) {
  const int value = lua_gettop(L);
  if (const ParameterPtr parameter = parameter_at(L, value)) {
    module.adopt(name, parameter);
    return true;
  }
  if (const std::shared_ptr<Module> child = module_at(L, value)) {
    module.add_child(name, child);
  } else if (const auto group = list_of_modules(L, value, name)) {
    module.add_child(name, group);
  } else if (const at::Tensor* const tensor = tensor_at(L, value)) {
    say_plain_tensor(L, *tensor, name);
  }
  return false;
}

const LuaModule& lua_half(lua_State* L) {
  const ModuleBox* box = half_of(L, 1);
  KF_CHECK(box != nullptr, Code::script, "expected a module made by nn.module, got {}", describe(L, 1));
  return static_cast<const LuaModule&>(*box->module);
}

// --- methods ---

/// `for name, weight in m:parameters()`: the loop calls the table, as next(table, name).
int next_parameter(lua_State* L) {
  lua_settop(L, 3);
  lua_remove(L, 2);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_next(L, 1) == 0) {
    lua_pushnil(L);
    return 1;
  }
  return 2;
}

int parameters(lua_State* L) {
  Module& module = self(L, "parameters");
  lua_newtable(L);
  for (const auto& [name, parameter] : module.named_parameters()) {
    push(L, std::string_view(name));
    push_value(L, *parameter, name);
    lua_rawset(L, -3);
  }
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, &next_parameter);
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
  return 1;
}

int train(lua_State* L) {
  self(L, "train").train(lua_isnoneornil(L, 2) || lua_toboolean(L, 2) != 0);
  lua_settop(L, 1);
  return 1;
}

int eval(lua_State* L) {
  self(L, "eval").train(false);
  lua_settop(L, 1);
  return 1;
}

int num_parameters(lua_State* L) {
  std::int64_t count = 0;
  std::vector<const Parameter*> seen;
  for (const auto& [name, parameter] : self(L, "num_parameters").named_parameters()) {
    if (std::find(seen.begin(), seen.end(), parameter.get()) == seen.end()) {
      seen.push_back(parameter.get());
      count += parameter->numel();
    }
  }
  lua_pushnumber(L, static_cast<double>(count));
  return 1;
}

/// m:materialize([{ seed = 0, dtype = "float32" }]) -> m
int materialize_module(lua_State* L) {
  Module& module = self(L, "materialize");
  std::uint64_t seed = 0;
  at::ScalarType type = at::kFloat;
  if (!lua_isnoneornil(L, 2)) {
    KF_CHECK(lua_istable(L, 2), Code::script, "m:materialize: expected a table of options, got {}", describe(L, 2));
    for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
      const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
      if (key == "seed") {
        const auto value = exact_integer(L, -1);
        KF_CHECK(value.has_value(), Code::script, "m:materialize: seed must be a whole number, got {}", describe(L, -1));
        seed = static_cast<std::uint64_t>(*value);
      } else if (key == "dtype") {
        type = check_dtype(check_text(L, -1, "m:materialize", "dtype"), "m:materialize");
      } else {
        fail(Code::script, "m:materialize: no option '{}'{}", key, suggestion(key, {"seed", "dtype"}));
      }
    }
  }
  materialize(module.parameters(), at::kCPU, type, seed);
  lua_settop(L, 1);
  return 1;
}

}  // namespace

void push_module(lua_State* L, std::shared_ptr<Module> module, ModuleCall call, const char* kind, ModuleMethods methods) {
  auto* box = new (lua_newuserdata(L, sizeof(ModuleBox))) ModuleBox();
  box->module = std::move(module);
  box->call = call;
  box->kind = kind;
  box->methods = methods;
  push_native_metatable(L);
  lua_setmetatable(L, -2);
}

std::shared_ptr<Module> module_at(lua_State* L, int index) {
  if (const ModuleBox* box = box_of<ModuleBox>(L, index)) {
    return box->module;
  }
  const ModuleBox* half = half_of(L, index);
  return half != nullptr ? half->module : nullptr;
}

void push_parameter(lua_State* L, ParameterPtr parameter) {
  auto* box = new (lua_newuserdata(L, sizeof(ParameterBox))) ParameterBox();
  box->parameter = std::move(parameter);
  if (luaL_newmetatable(L, kParameter) != 0) {
    lua_pushcfunction(L, collect<ParameterBox>);
    lua_setfield(L, -2, "__gc");
    set(L, "__metatable", std::string_view("parameter"));
  }
  lua_setmetatable(L, -2);
}

ParameterPtr parameter_at(lua_State* L, int index) {
  const ParameterBox* box = box_of<ParameterBox>(L, index);
  return box != nullptr ? box->parameter : nullptr;
}

void push_value(lua_State* L, const Parameter& parameter, const std::string& name) {
  KF_CHECK(parameter.value.defined(), Code::script,
           "the parameter '{}' has no values yet: a factory only declares it; use it in forward, or call m:materialize() first", name);
  push_tensor(L, parameter.value);
}

int make_module(lua_State* L) {
  KF_CHECK(lua_istable(L, 1), Code::script, "nn.module: expected a table { forward = function(self, x) ... end }, got {}", describe(L, 1));
  KF_CHECK(half_of(L, 1) == nullptr, Code::script, "nn.module: this table is a module already");
  lua_settop(L, 1);
  lua_getfield(L, 1, "forward");
  KF_CHECK(is_callable(L, -1), Code::script, "nn.module: forward must be a function, got {}", describe(L, -1));
  lua_settop(L, 1);
  auto module = std::make_shared<LuaModule>();
  for (const std::string& name : sorted_keys(L, 1)) {
    KF_CHECK(name != "training", Code::script, "nn.module: 'training' says the module's mode; give the field another name");
    lua_getfield(L, 1, name.c_str());
    if (adopt_field(L, *module, name)) {
      lua_pushnil(L);
      lua_setfield(L, 1, name.c_str());
    }
    lua_settop(L, 1);
  }
  lua_pushlightuserdata(L, const_cast<char*>(&kHalf));
  push_module(L, std::move(module), nullptr, "module");
  lua_rawset(L, 1);
  luaL_getmetatable(L, kModule);
  lua_setmetatable(L, 1);
  return 1;
}

int module_index(lua_State* L) {
  const char* name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  const LuaModule& module = lua_half(L);
  if (const Parameter* parameter = module.find(name)) {
    push_value(L, *parameter, name);
  } else if (std::string_view(name) == "training") {
    lua_pushboolean(L, module.training());
  } else if (!push_module_method(L, name)) {
    lua_pushnil(L);
  }
  return 1;
}

int module_newindex(lua_State* L) {
  const bool part = module_at(L, 3) != nullptr || parameter_at(L, 3) != nullptr;
  KF_CHECK(!part, Code::script, "modules and parameters are given to nn.module in its table, not added later: '{}'",
           lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
  const bool name = lua_type(L, 2) == LUA_TSTRING;
  KF_CHECK(!name || lua_half(L).find(lua_tostring(L, 2)) == nullptr, Code::script,
           "'{}' is a parameter: change its values with copy_, do not replace it", lua_tostring(L, 2));
  lua_rawset(L, 1);
  return 0;
}

bool push_module_method(lua_State* L, const char* name) {
  lua_getfield(L, LUA_REGISTRYINDEX, kMethods);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return false;
  }
  return true;
}

void add_module_methods(lua_State* L) {
  lua_newtable(L);
  const luaL_Reg methods[] = {{"parameters", &guarded<parameters>},
                              {"train", &guarded<train>},
                              {"eval", &guarded<eval>},
                              {"materialize", &guarded<materialize_module>},
                              {"num_parameters", &guarded<num_parameters>},
                              {"register_forward_hook", &guarded<register_module_hook>},
                              {nullptr, nullptr}};
  luaL_register(L, nullptr, methods);
  lua_setfield(L, LUA_REGISTRYINDEX, kMethods);
  luaL_newmetatable(L, kModule);
  lua_pushcfunction(L, &guarded<module_index>);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, &guarded<module_newindex>);
  lua_setfield(L, -2, "__newindex");
}

void ensure_storage(Module& module) {
  const auto named = module.named_parameters();
  if (named.empty() || named.front().second->value.defined()) {
    return;
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto seed = static_cast<std::uint64_t>(at::randint(0, std::int64_t{1} << 53, {1}, generator, at::kLong).item<std::int64_t>());
  materialize(module.parameters(), at::kCPU, at::kFloat, seed);
}

}  // namespace kf::lua
