// ctx:parameters(pattern) and ctx:gradients(pattern): name and tensor, one after the other. The tensors are lent: they end with the
// callback. ctx:register_forward_hook and ctx:register_gradient_hook: functions on modules and weights, until the run ends.

#include "bindings/context/context_access.h"
#include "bindings/nn/module_hooks.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/pattern.h"
#include "core/text.h"
#include "model/weight_unit.h"

namespace kf::lua {
namespace {

/// The iterator: upvalues are the list { name, tensor, name, tensor, ... } and the place in it.
int next_tensor(lua_State* L) {
  const auto place = static_cast<int>(lua_tointeger(L, lua_upvalueindex(2)));
  lua_rawgeti(L, lua_upvalueindex(1), place);
  lua_rawgeti(L, lua_upvalueindex(1), place + 1);
  lua_pushinteger(L, place + 2);
  lua_replace(L, lua_upvalueindex(2));
  return 2;
}

std::vector<ParameterPtr> chosen(lua_State* L, Model& model, const std::string& function) {
  const std::string pattern = lua_isnoneornil(L, 2) ? "*" : check_text(L, 2, function, "a name pattern");
  const ParameterList all = model.parameters();
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : all) {
    names.push_back(parameter->name);
  }
  const std::vector<bool> matches = match_pattern(pattern, names, function);
  std::vector<ParameterPtr> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (matches[i]) {
      out.push_back(all[i]);
    }
  }
  return out;
}

/// `tensor_of` gives the tensor of a weight; undefined ones are left out.
template <class F>
int iterate(lua_State* L, const char* name, F&& tensor_of) {
  const HookContext& context = self(L, name);
  ContextSlot& slot = slot_of(L);
  KF_CHECK(context.model != nullptr, Code::script, "ctx:{}() means nothing at {}", name, event_name(slot));
  const std::vector<ParameterPtr> weights = chosen(L, *context.model, format("ctx:{}", name));
  if (!slot.lease) {
    slot.lease = std::make_shared<Lease>(Lease{format("the tensors of step {}", context.state.step)});
  }
  lua_createtable(L, static_cast<int>(2 * weights.size()), 0);
  int place = 0;
  for (const ParameterPtr& weight : weights) {
    if (const at::Tensor tensor = tensor_of(*weight); tensor.defined()) {
      push(L, weight->name);
      lua_rawseti(L, -2, ++place);
      push_lent(L, tensor.detach(), slot.lease);
      lua_rawseti(L, -2, ++place);
    }
  }
  lua_pushinteger(L, 1);
  lua_pushcclosure(L, next_tensor, 2);
  return 1;
}

int context_parameters(lua_State* L) {
  slot_of(L).weights_lent = true;
  return iterate(L, "parameters", [](const Parameter& weight) { return weight.kept(); });
}

int context_gradients(lua_State* L) {
  if (slot_of(L).event == Event::backward_end) {
    self(L, "gradients").gradients_lent = true;
  }
  return iterate(L, "gradients", [](const Parameter& weight) { return weight.gradient(); });
}

/// Where ctx:register_..._hook(pattern, function) keeps what it makes, until the run ends.
std::vector<std::shared_ptr<ModuleHooks>>& kept_hooks(lua_State* L, const HookContext& context, const std::string& where) {
  ContextSlot& slot = slot_of(L);
  KF_CHECK(context.model != nullptr && slot.hooks != nullptr, Code::script, "{}() is for hooks, as in on_train_begin", where);
  return *slot.hooks;
}

/// ctx:NAME(pattern, function): `watch` makes the hooks look at what the pattern names in the model.
template <class Watch>
int register_hook(lua_State* L, const char* name, const char* pattern_is, Watch&& watch) {
  const HookContext& context = self(L, name);
  const std::string where = format("ctx:{}", name);
  auto& kept = kept_hooks(L, context, where);
  const std::string pattern = check_text(L, 2, where, pattern_is);
  const auto hooks = make_module_hooks(L, 3, where);
  watch(*hooks, *context.model, pattern, where);
  kept.push_back(hooks);
  push_hooks_handle(L, hooks);
  return 1;
}

int context_forward_hook(lua_State* L) {
  return register_hook(L, "register_forward_hook", "a name pattern of modules",
                       [](auto& hooks, auto& model, const auto&... rest) { hooks.watch_forwards(model, rest...); });
}

int context_gradient_hook(lua_State* L) {
  return register_hook(L, "register_gradient_hook", "a name pattern of weights",
                       [](auto& hooks, auto& model, const auto&... rest) { hooks.watch_gradients(model, rest...); });
}

}  // namespace

void add_tensors(lua_State* L, ContextSlot* slot) {
  set_function(L, "parameters", &guarded<context_parameters>, slot);
  set_function(L, "gradients", &guarded<context_gradients>, slot);
  set_function(L, "register_forward_hook", &guarded<context_forward_hook>, slot);
  set_function(L, "register_gradient_hook", &guarded<context_gradient_hook>, slot);
}

void publish_weights(ContextSlot& slot) {
  if (slot.weights_lent && slot.context != nullptr && slot.context->model != nullptr) {
    publish(slot.context->model->parameters());
  }
}

void end_lease(ContextSlot& slot) {
  publish_weights(slot);
  slot.weights_lent = false;
  if (slot.lease) {
    slot.lease->over = true;
  }
}

}  // namespace kf::lua
