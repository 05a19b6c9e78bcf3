#pragma once
// Hooks on modules and weights by name: what `ctx:register_forward_hook`, `ctx:register_gradient_hook` and `m:register_forward_hook` share.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/vm/runtime.h"
#include "model/model.h"
#include "model/observe.h"

namespace kf::lua {

/// The hooks of one call; they end with it, or with `remove`.
class ModuleHooks {
 public:
  /// `function` is called as function(name, ...); `place` ("recipe.lua:12") is in its errors.
  ModuleHooks(Ref function, std::string place) : function_(std::make_shared<Ref>(std::move(function))), place_(std::move(place)) {}
  ~ModuleHooks() { remove(); }
  ModuleHooks(const ModuleHooks&) = delete;
  ModuleHooks& operator=(const ModuleHooks&) = delete;

  /// function(name, input, output) -> nil or another output, after every forward of the modules below `root` that match. Throws
  /// Code::script when none does; `where` starts the message.
  void watch_forwards(const Module& root, const std::string& pattern, const std::string& where);
  void watch_forward(const std::shared_ptr<Module>& module, const std::string& name);
  /// function(name, gradient) -> nil or another gradient, whenever a backward reaches a weight that matches.
  void watch_gradients(Model& model, const std::string& pattern, const std::string& where);
  /// Ends all of them; a module that was never called while others were is told in the log.
  void remove();
  /// Whether there is anything left that could be called.
  bool over() const;

 private:
  struct Watched {
    std::string name;
    std::weak_ptr<Module> module;
    std::unique_ptr<Observation> observation;
  };

  std::shared_ptr<Ref> function_;
  std::string place_;
  std::int64_t forwards_before_ = observed_forwards();
  std::vector<Watched> forwards_;
  std::vector<std::pair<at::Tensor, unsigned>> gradients_;
};

/// The hook function at `index` with the place of the calling line.
std::shared_ptr<ModuleHooks> make_module_hooks(lua_State* L, int index, const std::string& where);
/// Pushes a handle with :remove().
void push_hooks_handle(lua_State* L, const std::shared_ptr<ModuleHooks>& hooks);

/// m:register_forward_hook([pattern,] function(name, input, output)) -> a handle. Without a pattern: the module itself, called "".
int register_module_hook(lua_State* L);

/// native.is_observed() -> whether any module has forward hooks.
int is_observed(lua_State* L);
/// native.observe(module, input, output, ...) -> output, ...: the hooks of a module written in Lua.
int observe(lua_State* L);

}  // namespace kf::lua
