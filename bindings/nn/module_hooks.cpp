#include "bindings/nn/module_hooks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <new>

#include "bindings/nn/lua_module.h"
#include "bindings/nn/module_box.h"
#include "bindings/session/factory.h"
#include "bindings/session/session.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/pattern.h"
#include "bindings/vm/stack.h"
#include "core/log.h"
#include "model/weight_unit.h"

namespace kf::lua {
namespace {

constexpr char kHandle[] = "kf.nn.hooks";

using Named = std::vector<std::pair<std::string, std::shared_ptr<Module>>>;

/// Modules that can be watched, outer ones first. An adapter and the module inside of it share a name: the adapter counts.
void collect(const Module& module, const std::string& prefix, Named& out) {
  for (const auto& [name, child] : module.children()) {
    const std::string path = name.empty() ? prefix : prefix.empty() ? name : prefix + "." + name;
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& entry) { return entry.first == path; });
    if (!known && !path.empty() && child->observable()) {
      out.emplace_back(path, child);
    }
    collect(*child, path, out);
  }
}

/// What `function` gives back for (name, tensors): undefined for nil. Its result stands for the last tensor, so it has that one's form.
at::Tensor call_hook(const Ref& function, const std::string& where, const std::string& name, std::initializer_list<at::Tensor> tensors) {
  Runtime& runtime = function.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  function.push(L);
  push(L, name);
  for (const at::Tensor& tensor : tensors) {
    push_tensor(L, tensor);
  }
  try {
    runtime.call(1 + static_cast<int>(tensors.size()), 1);
  } catch (const Error& error) {
    rethrow_from(error, where, "in the " + where);
  }
  if (lua_isnil(L, -1)) {
    return {};
  }
  const at::Tensor* result = tensor_at(L, -1);
  const at::Tensor& old = *(tensors.end() - 1);
  KF_CHECK(result != nullptr, Code::script, "{}: it must return a tensor or nothing, got {}", where, describe(L, -1));
  KF_CHECK(result->sizes() == old.sizes() && result->scalar_type() == old.scalar_type(), Code::script,
           "{}: what it returns stands for {}, got {}", where, tensor_text(old), tensor_text(*result));
  return *result;
}

std::shared_ptr<ModuleHooks>* handle_at(lua_State* L) { return static_cast<std::shared_ptr<ModuleHooks>*>(luaL_checkudata(L, 1, kHandle)); }

int remove_hooks(lua_State* L) {
  (*handle_at(L))->remove();
  return 0;
}

}  // namespace

void ModuleHooks::watch_forward(const std::shared_ptr<Module>& module, const std::string& name) {
  const std::string where = format("{}: forward hook on '{}'", place_, name);
  const auto function = function_;
  forwards_.push_back(
      {name, module, std::make_unique<Observation>(module, [function, where, name](const at::Tensor& input, const at::Tensor& output) {
         return call_hook(*function, where, name, {input, output});
       })});
}

void ModuleHooks::watch_forwards(const Module& root, const std::string& pattern, const std::string& where) {
  Named modules;
  collect(root, "", modules);
  std::vector<std::string> names;
  for (const auto& [name, module] : modules) {
    names.push_back(name);
  }
  const std::vector<bool> matches = match_pattern(pattern, names, where);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (matches[i]) {
      watch_forward(modules[i].second, modules[i].first);
    }
  }
}

void ModuleHooks::watch_gradients(Model& model, const std::string& pattern, const std::string& where) {
  const ParameterList all = model.parameters();
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : all) {
    names.push_back(parameter->name);
  }
  const std::vector<bool> matches = match_pattern(pattern, names, where);
  for (std::size_t i = 0; i < all.size(); ++i) {
    KF_CHECK(!matches[i] || all[i]->unit == nullptr || all[i]->unit->keeps_values(), Code::script,
             "{}: '{}' is divided over ranks and made anew in each step (distributed.zero_stage = 3); use zero_stage 1 or 2", where,
             all[i]->name);
    if (!matches[i] || !all[i]->value.requires_grad()) {  // frozen weights have no gradient to see
      continue;
    }
    const std::string& name = names[i];
    const std::string text = format("{}: gradient hook on '{}'", place_, name);
    const auto function = function_;
    gradients_.emplace_back(all[i]->value, all[i]->value.register_hook([function, text, name](const at::Tensor& gradient) {
      const at::Tensor result = call_hook(*function, text, name, {gradient});
      return result.defined() ? result : gradient;
    }));
  }
  KF_CHECK(!gradients_.empty(), Code::script, "{}: every weight that '{}' matches is frozen and has no gradient", where, pattern);
}

void ModuleHooks::remove() {
  for (const Watched& watched : forwards_) {
    if (watched.observation->calls() == 0 && observed_forwards() > forwards_before_) {
      log::warn("{}: the forward hook on '{}' was never called: nothing called this layer", place_, watched.name);
    }
  }
  forwards_.clear();
  for (const auto& [tensor, position] : gradients_) {
    tensor.remove_hook(position);
  }
  gradients_.clear();
}

bool ModuleHooks::over() const {
  return gradients_.empty() && std::all_of(forwards_.begin(), forwards_.end(), [](const Watched& w) { return w.module.expired(); });
}

std::shared_ptr<ModuleHooks> make_module_hooks(lua_State* L, int index, const std::string& where) {
  KF_CHECK(is_callable(L, index), Code::script, "{}: expected a function, got {}", where, describe(L, index));
  lua_pushvalue(L, index);
  Ref function(L);
  return std::make_shared<ModuleHooks>(std::move(function), caller_position(L));
}

void push_hooks_handle(lua_State* L, const std::shared_ptr<ModuleHooks>& hooks) {
  new (lua_newuserdata(L, sizeof hooks)) std::shared_ptr<ModuleHooks>(hooks);
  if (luaL_newmetatable(L, kHandle) != 0) {
    lua_newtable(L);
    lua_pushcfunction(L, &guarded<remove_hooks>);
    lua_setfield(L, -2, "remove");
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, collect<std::shared_ptr<ModuleHooks>>);
    lua_setfield(L, -2, "__gc");
    set(L, "__metatable", std::string_view("hook"));
  }
  lua_setmetatable(L, -2);
}

int register_module_hook(lua_State* L) {
  constexpr const char* kWhere = "m:register_forward_hook";
  const std::shared_ptr<Module> module = module_at(L, 1);
  KF_CHECK(module != nullptr, Code::script, "{}: call it with a colon on a module, got {}", kWhere, describe(L, 1));
  const bool by_name = lua_type(L, 2) == LUA_TSTRING;
  auto hooks = make_module_hooks(L, by_name ? 3 : 2, kWhere);
  if (by_name) {
    hooks->watch_forwards(*module, check_text(L, 2, kWhere, "a name pattern"), kWhere);
  } else {
    hooks->watch_forward(module, "");
  }
  auto& kept = Session::of(L).module_hooks;
  std::erase_if(kept, [](const auto& old) { return old->over(); });
  kept.push_back(hooks);
  push_hooks_handle(L, hooks);
  return 1;
}

int is_observed(lua_State* L) {
  lua_pushboolean(L, observation_count > 0);
  return 1;
}

int observe(lua_State* L) {
  const std::shared_ptr<Module> module = module_at(L, 1);
  const at::Tensor* input = tensor_at(L, 2);
  const at::Tensor* output = tensor_at(L, 3);
  if (module != nullptr && output != nullptr) {
    const Crossing crossing(L);
    at::Tensor replaced = observed(*module, input != nullptr ? *input : at::Tensor(), *output);
    if (!replaced.is_same(*output)) {
      push_tensor(L, std::move(replaced));
      lua_replace(L, 3);
    }
  }
  return lua_gettop(L) - 2;
}

}  // namespace kf::lua
