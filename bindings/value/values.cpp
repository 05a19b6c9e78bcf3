#include "bindings/value/values.h"

#include <algorithm>
#include <cmath>

#include "bindings/tensor/tensor.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::lua {
namespace {

using config::Array;
using config::Node;
using config::Table;

constexpr int kMaxDepth = 64;

class Reader {
 public:
  Reader(lua_State* L, const ReadOptions& options) : L_(L), options_(options) {}

  Node read(int index) {
    if (path_.size() > kMaxDepth || lua_checkstack(L_, 8) == 0) {
      refuse("is nested too deep (a table that contains itself?)");
    }
    Node node(scalar_or_table(index < 0 ? lua_gettop(L_) + index + 1 : index));
    if (options_.locate) {
      Origins origins = options_.locate(path_);
      node.key_origin = std::move(origins.key);
      node.origin = std::move(origins.value);
    }
    return node;
  }

 private:
  /// Throws `recipe.lua:12: the job: 'phases.2.stop_when' <why>`.
  [[noreturn]] void refuse(const std::string& why) const {
    const std::string position = options_.locate ? to_text(options_.locate(path_).value) + ": " : "";
    fail(Code::script, "{}{}{} {}", position, options_.what, path_.empty() ? "" : ": '" + join(path_, ".") + "'", why);
  }

  Node::Value scalar_or_table(int index) {
    switch (lua_type(L_, index)) {
      case LUA_TNIL: return std::monostate{};
      case LUA_TBOOLEAN: return lua_toboolean(L_, index) != 0;
      case LUA_TNUMBER: return number(index);
      case LUA_TSTRING: return text(index);
      case LUA_TTABLE: return table(index);
      default:
        if (tensor_at(L_, index) != nullptr) {
          refuse(format("is a {}; only booleans, numbers, strings and tables have a place there: t:tolist() makes one of it",
                        describe_any(L_, index)));
        }
        refuse(format("is a {}; only booleans, numbers, strings and tables have a place there", luaL_typename(L_, index)));
    }
  }

  /// Past 2^53 it stays a float: the schema refuses it where the declared type is an integer.
  Node::Value number(int index) const {
    const double value = lua_tonumber(L_, index);
    const bool negative_zero = value == 0 && std::signbit(value);
    if (const auto integer = exact_integer(L_, index); integer && !negative_zero) {
      return *integer;
    }
    return value;
  }

  Node::Value text(int index) const {
    std::size_t size = 0;
    const char* data = lua_tolstring(L_, index, &size);
    std::string value(data, size);
    if (!is_utf8(value)) {
      refuse("is a string that is not UTF-8");
    }
    return value;
  }

  Node::Value table(int index) {
    const std::size_t length = lua_objlen(L_, index);
    const std::size_t keys = count_keys(index);
    if (keys == 0) {
      return Table{};
    }
    if (length == keys) {
      return list(index, length);
    }
    if (length > 0 && !has_names(index)) {
      refuse("is a list with gaps; false can stand for a missing item");
    }
    return named(index, length);
  }

  std::size_t count_keys(int index) const {
    std::size_t count = 0;
    for (lua_pushnil(L_); lua_next(L_, index) != 0; lua_pop(L_, 1)) {
      ++count;
    }
    return count;
  }

  bool has_names(int index) const {
    for (lua_pushnil(L_); lua_next(L_, index) != 0; lua_pop(L_, 1)) {
      if (lua_type(L_, -2) == LUA_TSTRING) {
        lua_pop(L_, 2);
        return true;
      }
    }
    return false;
  }

  Node::Value list(int index, std::size_t length) {
    Array out;
    for (std::size_t i = 1; i <= length; ++i) {
      lua_rawgeti(L_, index, static_cast<int>(i));
      if (lua_isnil(L_, -1)) {
        refuse("is a list with gaps");
      }
      path_.push_back(to_text(i));
      out.push_back(read(-1));
      path_.pop_back();
      lua_pop(L_, 1);
    }
    return out;
  }

  /// Sorted by key: Lua's own order changes from run to run.
  Node::Value named(int index, std::size_t length) {
    std::vector<std::string> keys;
    for (lua_pushnil(L_); lua_next(L_, index) != 0; lua_pop(L_, 1)) {
      if (lua_type(L_, -2) != LUA_TSTRING) {
        refuse((length > 0 ? "mixes names and list items" : "has the key " + describe(L_, -2)) +
               "; a table holds either names or the items 1, 2, 3, ...");
      }
      std::size_t size = 0;
      const char* name = lua_tolstring(L_, -2, &size);
      keys.emplace_back(name, size);
      if (!is_utf8(keys.back()) || keys.back().find('\0') != std::string::npos) {
        refuse(format("has the key {}, which is no UTF-8 text", kf::quoted(keys.back())));
      }
    }
    std::sort(keys.begin(), keys.end());
    Table out;
    for (const std::string& key : keys) {
      push(L_, key);
      lua_rawget(L_, index);
      path_.push_back(key);
      out[key] = read(-1);
      path_.pop_back();
      lua_pop(L_, 1);
    }
    return out;
  }

  lua_State* L_;
  const ReadOptions& options_;
  std::vector<std::string> path_;
};

struct Pusher {
  lua_State* L;
  const std::string& what;

  void operator()(std::monostate) const { lua_pushnil(L); }
  void operator()(bool value) const { lua_pushboolean(L, value); }
  void operator()(std::int64_t value) const { push_integer(L, value, what); }
  void operator()(double value) const { lua_pushnumber(L, value); }
  void operator()(const std::string& value) const { push(L, value); }
  void operator()(const Array& list) const {
    lua_createtable(L, static_cast<int>(list.size()), 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
      push_value(L, list[i], what);
      lua_rawseti(L, -2, static_cast<int>(i + 1));
    }
  }
  void operator()(const Table& table) const {
    lua_createtable(L, 0, static_cast<int>(table.size()));
    for (const auto& [key, value] : table) {
      push(L, key);
      push_value(L, value, what + "." + key);
      lua_rawset(L, -3);
    }
  }
};

}  // namespace

config::Node read_value(lua_State* L, int index, const ReadOptions& options) { return Reader(L, options).read(index); }

void push_value(lua_State* L, const config::Node& node, const std::string& what) {
  luaL_checkstack(L, 8, "a deeply nested value");
  std::visit(Pusher{L, what}, node.value);
}

void push_value(lua_State* L, const config::Table& table, const std::string& what) { Pusher{L, what}(table); }

}  // namespace kf::lua
