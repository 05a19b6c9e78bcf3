#pragma once
// The stack of the script, for whoever asks from outside where a run stands still.

#include "bindings/vm/runtime.h"

namespace kf::lua {

/// While one exists, core/stacks can ask for the stack of this thread's Lua: it is written down at Lua's next instruction. Code that the
/// JIT compiler has turned into machine code does not notice.
class LuaStack {
 public:
  explicit LuaStack(Runtime& runtime);
  ~LuaStack();
  LuaStack(const LuaStack&) = delete;
  LuaStack& operator=(const LuaStack&) = delete;
};

}  // namespace kf::lua
