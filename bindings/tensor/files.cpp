// kf.safetensors: tables of tensors in files that Python opens, too.

#include <ATen/ATen.h>

#include <algorithm>

#include "bindings/tensor/methods.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "checkpoint/files/safetensors.h"
#include "core/error.h"

namespace kf::lua {
namespace {

constexpr char kSave[] = "kf.safetensors.save";

std::map<std::string, std::string> read_metadata(lua_State* L, int index) {
  std::map<std::string, std::string> out;
  if (lua_isnoneornil(L, index)) {
    return out;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: metadata must be a table of strings, got {}", kSave, describe(L, index));
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING, Code::script,
             "{}: metadata holds strings by name, got {} = {}", kSave, describe(L, -2), describe(L, -1));
    out.emplace(lua_tostring(L, -2), lua_tostring(L, -1));
  }
  return out;
}

/// kf.safetensors.save(path, { name = tensor } [, { key = "text" }])
int save(lua_State* L) {
  const std::string path = check_text(L, 1, kSave, "a path");
  write_safetensors(path, read_tensors(L, 2, kSave), read_metadata(L, 3));
  return 0;
}

/// kf.safetensors.load(path) -> { name = tensor }, metadata
int load(lua_State* L) {
  const SafetensorsFile file(check_text(L, 1, "kf.safetensors.load", "a path"));
  lua_createtable(L, 0, static_cast<int>(file.names().size()));
  for (const std::string& name : file.names()) {
    push(L, std::string_view(name));
    push_tensor(L, file.tensor(name), Memory::fresh);
    lua_rawset(L, -3);
  }
  lua_newtable(L);
  for (const auto& [key, text] : file.metadata()) {
    set(L, key.c_str(), std::string_view(text));
  }
  return 2;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> read_tensors(lua_State* L, int index, std::string_view where) {
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table { name = tensor }, got {}", where, describe(L, index));
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "{}: tensors have names, got the key {}", where, describe(L, -2));
    const at::Tensor* tensor = tensor_at(L, lua_gettop(L));
    KF_CHECK(tensor != nullptr, Code::script, "{}: '{}' is {}, not a tensor", where, lua_tostring(L, -2), describe(L, -1));
    out.emplace_back(lua_tostring(L, -2), tensor->detach());
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

void add_files(lua_State* L) {
  lua_newtable(L);
  const luaL_Reg functions[] = {{"save", &guarded<save>}, {"load", &guarded<load>}, {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
  lua_setfield(L, -2, "safetensors");
}

}  // namespace kf::lua
