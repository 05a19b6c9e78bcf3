#include "bindings/session/config_view.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bindings/value/values.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::lua {
namespace {

using config::Table;

constexpr char kMetatable[] = "kf.config";

/// The userdata: one table of the tree, kept alive by the whole.
struct View {
  std::shared_ptr<const Table> whole;
  const Table* table;
  std::string name;
  int levels;  // of views below this one
};

int view_index(lua_State* L);
int view_newindex(lua_State* L);
int view_tostring(lua_State* L);

void push_metatable(lua_State* L) {
  if (luaL_newmetatable(L, kMetatable) == 0) {
    return;
  }
  const luaL_Reg methods[] = {{"__index", &guarded<view_index>},
                              {"__newindex", &guarded<view_newindex>},
                              {"__tostring", &guarded<view_tostring>},
                              {"__gc", collect<View>},
                              {nullptr, nullptr}};
  luaL_register(L, nullptr, methods);
  set(L, "__metatable", "read-only");
}

void push_view(lua_State* L, View view) {
  void* place = lua_newuserdata(L, sizeof(View));
  new (place) View(std::move(view));  // complete before the metatable makes it collectable
  push_metatable(L);
  lua_setmetatable(L, -2);
}

View& self(lua_State* L) { return *static_cast<View*>(luaL_checkudata(L, 1, kMetatable)); }

int view_index(lua_State* L) {
  const View& view = self(L);
  const std::string key = check_text(L, 2, view.name, "a field");
  const config::Node* node = view.table->find(key);
  if (!node) {
    std::vector<std::string> names;
    for (const auto& [name, value] : *view.table) {
      names.push_back(name);
    }
    fail(Code::script, "{} has no field '{}'{}", view.name, key, suggestion(key, names));
  }
  const std::string name = view.name + "." + key;
  if (node->table() && view.levels > 0) {
    push_view(L, View{view.whole, node->table(), name, view.levels - 1});
  } else {
    push_value(L, *node, name);
  }
  return 1;
}

int view_newindex(lua_State* L) {
  const View& view = self(L);
  fail(Code::script, "{} is read-only: '{}' is set before the run starts, in the table that the script returns or gives to kf.run",
       view.name, lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
}

int view_tostring(lua_State* L) {
  const View& view = self(L);
  std::vector<std::string> names;
  for (const auto& [name, value] : *view.table) {
    names.push_back(name);
  }
  push(L, format("{} (read-only): {}", view.name, join(names, ", ")));
  return 1;
}

}  // namespace

Table job_tree(const config::Config& config) {
  Table tree;
  for (const config::Section& section : config::sections()) {
    tree[section.name] = config::Node(Table{});
  }
  for (const config::Row& row : config::rows()) {
    Table& home = row.section.empty() ? tree : *tree[row.section].table();
    const config::TypeRow& type = config::type_row(row.type);
    home[row.name] = type.in_script != nullptr ? type.in_script(row.get(config)) : row.get(config);
  }
  for (const auto& [key, options] : config.parts) {
    const std::size_t dot = key.find('.');
    config::Node& home = tree[key.substr(0, dot)];
    if (!home.table()) {
      home = config::Node(Table{});
    }
    (*home.table())[key.substr(dot + 1)] = config::Node(options);
  }
  return tree;
}

void push_view(lua_State* L, Table tree, const char* name, int levels) {
  auto whole = std::make_shared<const Table>(std::move(tree));
  const Table* table = whole.get();
  push_view(L, View{std::move(whole), table, name, levels});
}

}  // namespace kf::lua
