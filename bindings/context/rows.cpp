#include "bindings/context/rows.h"

#include <algorithm>
#include <type_traits>

#include "bindings/context/hook_context.h"
#include "bindings/tensor/numbers.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

void push_row(lua_State* L, const StepRow& row) {
  lua_createtable(L, 0, 16);
  each_number(row, [&](const char* name, bool mean, auto value) {
    if (mean && !row.has_loss) {
      return;
    }
    if constexpr (std::is_same_v<decltype(value), double>) {
      push(L, value);
    } else {
      push_wide(L, value);
    }
    lua_setfield(L, -2, name);
  });
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

void push_result(lua_State* L, const RunResult& result) {
  lua_createtable(L, 0, 10);
  set(L, "status", std::string_view(result.status));
  if (!result.reason.empty()) {
    set(L, "reason", std::string_view(result.reason));
  }
  set(L, "steps", static_cast<double>(result.step));
  set(L, "skipped", static_cast<double>(result.skipped));
  push_wide(L, result.tokens);
  lua_setfield(L, -2, "tokens");
  if (result.loss) {
    set(L, "loss", *result.loss);
  }
  set(L, "seconds", result.seconds);
  if (!result.checkpoint.empty()) {
    set(L, "checkpoint", std::string_view(result.checkpoint));
  }
  if (result.eval) {
    push_eval(L, *result.eval);
    lua_setfield(L, -2, "eval");
  }
  lua_createtable(L, static_cast<int>(result.history.size()), 0);
  int number = 0;
  for (const auto& row : result.history) {
    std::visit([L](const auto& value) { push_row(L, value); }, row);
    lua_rawseti(L, -2, ++number);
  }
  lua_setfield(L, -2, "history");
}

Values read_values(lua_State* L, int index, const std::string& where) {
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of name = number, got {}", where, describe(L, index));
  const int table = index < 0 ? lua_gettop(L) + index + 1 : index;
  Values values;
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "{}: expected names as keys, got {}", where, describe(L, -2));
    const std::string name(text_at(L, -2));
    KF_CHECK(is_utf8(name) && name.find('\0') == std::string::npos, Code::script, "{}: the name {} is no UTF-8 text", where,
             kf::quoted(name));
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: '{}' must be a number, got {}", where, name, describe(L, -1));
    values.emplace_back(name, lua_tonumber(L, -1));
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace kf::lua
