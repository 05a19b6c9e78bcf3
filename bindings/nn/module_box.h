#pragma once
// Modules and parameters as Lua holds them.

#include <lua.hpp>

#include <memory>
#include <string>
#include <string_view>

#include "model/module.h"

namespace kf::lua {

/// What calling a native module does: the userdata is at 1, its arguments follow; results are pushed and counted.
using ModuleCall = int (*)(lua_State* L, Module& module);
/// Methods of one kind of native module alone: the function called `name`, or null.
using ModuleMethods = lua_CFunction (*)(std::string_view name);

struct ModuleBox {
  static constexpr std::uint64_t kMagic = 0x6b666d6f64756c65ULL;
  std::uint64_t magic = kMagic;
  std::shared_ptr<Module> module;
  ModuleCall call = nullptr;   // null for the native half of a module written in Lua
  const char* kind = nullptr;  // "linear", for messages
  ModuleMethods methods = nullptr;
  char padding[48] = {};  // a size of its own
};

struct ParameterBox {
  static constexpr std::uint64_t kMagic = 0x6b66706172616d65ULL;
  std::uint64_t magic = kMagic;
  ParameterPtr parameter;
  char padding[88] = {};
};

/// Pushes a native module, callable from Lua: m(x), m.weight, m:parameters(), m:train(on).
void push_module(lua_State* L, std::shared_ptr<Module> module, ModuleCall call, const char* kind, ModuleMethods methods = nullptr);
/// The module behind the value at `index`, native or made by nn.module; null for anything else.
std::shared_ptr<Module> module_at(lua_State* L, int index);

void push_parameter(lua_State* L, ParameterPtr parameter);
ParameterPtr parameter_at(lua_State* L, int index);
/// Pushes what forward reads of a parameter. Throws where it has no storage yet.
void push_value(lua_State* L, const Parameter& parameter, const std::string& name);

/// nn.module(table): turns its modules, parameters and buffers into children by their names, sorted, and gives the table its metatable.
int make_module(lua_State* L);
/// The names of fields and methods of modules written in Lua; arguments: module, key.
int module_index(lua_State* L);
int module_newindex(lua_State* L);

/// m:parameters() -> { name = tensor }; m:train([on]); m:eval(); m:materialize({ seed, dtype, device }).
void add_module_methods(lua_State* L);
/// Looks `name` up among the methods; pushes it and returns true.
bool push_module_method(lua_State* L, const char* name);

/// Whether every weight below has storage; gives it to those that have none, from kf.rng, so that a free-standing module can be called.
void ensure_storage(Module& module);

}  // namespace kf::lua
