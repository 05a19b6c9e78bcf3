#pragma once
// What the adapters of layers share: the value that a factory returned, called with tensors.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/vm/runtime.h"
#include "model/layer/place.h"
#include "model/model.h"
#include "registry/part_states.h"
#include "registry/registries.h"

namespace kf::lua {

/// A module or function from a factory.
class LuaPart {
 public:
  LuaPart(std::string where, Ref value);

  /// Its module, with children and parameters; null for a plain function.
  const std::shared_ptr<Module>& module() const { return module_; }
  /// part(x [, ctx]): a tensor of the shape and type of x, or Code::script naming the part.
  at::Tensor call(const at::Tensor& x, const ForwardContext* context) const;
  /// The same without a check of the result's shape.
  at::Tensor call_free(const at::Tensor& x, const ForwardContext* context) const;
  /// part(x [, ctx]) with `results` values on top of the stack when `read` looks at them.
  void call(const at::Tensor& x, const ForwardContext* context, int results, const std::function<void(lua_State*)>& read) const;
  /// part:name(...) with what `push` puts on the stack (it gives their number); false when a module has no such field.
  bool call_method(const char* name, const std::function<int(lua_State*)>& push) const;
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Ref value_;
  std::shared_ptr<Module> module_;
  std::vector<PartStates::Handle> kept_;  // of it and the modules inside
};

/// Calls the factory for a place in the model; `fill` adds the arguments of its kind to the table on top.
LuaPart call_factory(const Ref& factory, const std::string& where, const PartArgs& args, const Place& place,
                     const std::function<void(lua_State*)>& fill);
/// t[name] = a count, for the table on top.
void set_count(lua_State* L, const char* name, std::int64_t value);

/// Whether the value is what a factory of layers may return.
bool is_part(lua_State* L, int index);

}  // namespace kf::lua
