#pragma once
// The table of a job, as a script returns it or gives it to kf.run: checked for what Lua alone can get wrong, hooks registered.

#include <lua.hpp>

#include <string>
#include <vector>

#include "bindings/session/session.h"
#include "config/tree/node.h"

namespace kf::lua {

/// The hooks and phases that one table registered. Forgets them when destroyed, unless they were kept.
class TableHooks {
 public:
  explicit TableHooks(Session& session) : session_(session) {}
  ~TableHooks();
  TableHooks(const TableHooks&) = delete;
  TableHooks& operator=(const TableHooks&) = delete;

  void add(std::string name) { names_.push_back(std::move(name)); }
  void add_phase(std::string name) { phases_.push_back(std::move(name)); }
  /// They stay as long as the script.
  void keep() {
    names_.clear();
    phases_.clear();
  }

 private:
  Session& session_;
  std::vector<std::string> names_;
  std::vector<std::string> phases_;
};

/// The table at `index` as a tree with origins in `file`; `line` is where it was returned or passed on, for keys whose place is not found.
/// Entries of `hooks` that are tables are registered (under their name, else "hook 1" by their place) and become names; functions in
/// entries of `phases` are registered as "phase 1", ..., which the entries then name.
/// `inside` is where the table stands in a larger one of the script ({"base"} of a sweep).
config::Node read_recipe(lua_State* L, int index, Session& session, const std::string& file, int line, TableHooks& hooks,
                         const std::vector<std::string>& inside = {});

}  // namespace kf::lua
