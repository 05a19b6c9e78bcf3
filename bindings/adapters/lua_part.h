#pragma once
// What the adapters of layers share: the value that a factory returned, called with tensors.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <memory>
#include <string>

#include "bindings/runtime.h"
#include "model/model.h"

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
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Ref value_;
  std::shared_ptr<Module> module_;
};

/// Whether the value is what a factory of layers may return.
bool is_part(lua_State* L, int index);

}  // namespace kf::lua
