#pragma once
// The operators of LibTorch as rows of lua/meta/kf.lua, from the dispatcher's schemas.

#include <string>

namespace kf::lua {

/// The classes kf.Methods (operators that take a tensor first: `t:softmax(-1)`, `kf.op.softmax(t, -1)`) and kf.Op (the others).
std::string operators_text();

}  // namespace kf::lua
