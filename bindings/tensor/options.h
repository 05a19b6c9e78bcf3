#pragma once
// { dtype = ..., device = ..., requires_grad = ... } of what makes tensors.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <optional>
#include <string_view>

namespace kf::lua {

struct TensorOptions {
  std::optional<at::ScalarType> dtype;
  std::optional<at::Device> device;
  bool requires_grad = false;
};

/// The table at `index`; nil is none. Throws Code::script for anything else and for unknown keys.
TensorOptions read_options(lua_State* L, int index, std::string_view function);

}  // namespace kf::lua
