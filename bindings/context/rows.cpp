#include "bindings/context/rows.h"

#include <algorithm>

#include "bindings/context/hook_context.h"
#include "bindings/tensor/numbers.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

void push_row(lua_State* L, const StepRow& row) {
  lua_createtable(L, 0, 12);
  set(L, "step", static_cast<double>(row.step));
  if (row.has_loss) {
    set(L, "loss", row.loss);
    set(L, "ce", row.ce);
    set(L, "z_loss", row.z_loss);
    set(L, "aux_loss", row.aux_loss);
    set(L, "grad_norm", row.grad_norm);
  }
  set(L, "lr", row.lr);
  push_wide(L, row.tokens);
  lua_setfield(L, -2, "tokens");
  set(L, "tokens_per_sec", row.tokens_per_sec);
  set(L, "mfu", row.mfu);
  set(L, "memory_bytes", static_cast<double>(row.memory_bytes));
  set(L, "seconds", row.seconds);
  set(L, "time", row.time);
  set(L, "skipped", static_cast<double>(row.skipped));
  for (const auto& [name, value] : row.extra) {
    set(L, name.c_str(), value);
  }
}

void push_row(lua_State* L, const EvalResult& eval) {
  lua_createtable(L, 0, 2);
  set(L, "step", static_cast<double>(eval.step));
  push_eval(L, eval);
  lua_setfield(L, -2, "eval");
}

Values read_values(lua_State* L, int index, const std::string& where) {
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of name = number, got {}", where, describe(L, index));
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  Values values;
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "{}: expected names as keys, got {}", where, describe(L, -2));
    std::size_t size = 0;
    const char* key = lua_tolstring(L, -2, &size);
    const std::string name(key, size);
    KF_CHECK(is_utf8(name) && name.find('\0') == std::string::npos, Code::script, "{}: the name {} is no UTF-8 text", where,
             kf::quoted(name));
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: '{}' must be a number, got {}", where, name, describe(L, -1));
    values.emplace_back(name, lua_tonumber(L, -1));
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace kf::lua
