#pragma once
// The native half of a module written in Lua: its children and parameters under the names of its fields. It does not know the table, so
// that the collector can free both.

#include <string>
#include <utility>
#include <vector>

#include "model/module.h"

namespace kf::lua {

/// A module whose forward only Lua calls; such ones hand their results through `observed`, too.
class ScriptLayer : public Module {
 public:
  bool observable() const override { return true; }
};

class LuaModule final : public ScriptLayer {
 public:
  using Module::add_child;
  void adopt(const std::string& name, ParameterPtr parameter) {
    own_.emplace_back(name, parameter);
    share_parameter(name, std::move(parameter));
  }
  /// Null when this module has no such parameter of its own.
  const Parameter* find(std::string_view name) const {
    for (const auto& [known, parameter] : own_) {
      if (known == name) {
        return parameter.get();
      }
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<std::string, ParameterPtr>> own_;
};

}  // namespace kf::lua
