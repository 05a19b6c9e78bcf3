#pragma once
// `ctx` of forward: what travels beside the hidden state, lent to Lua for one call.

#include <lua.hpp>

#include "model/model.h"

namespace kf::lua {

/// The forward of a model that is under way on this thread: layers that leave something in its results find it here where Lua calls them
/// without its ctx.
class ForwardUnderWay {
 public:
  explicit ForwardUnderWay(const ForwardContext& context);
  ~ForwardUnderWay();
  ForwardUnderWay(const ForwardUnderWay&) = delete;
  ForwardUnderWay& operator=(const ForwardUnderWay&) = delete;
  /// One without results outside of any.
  static const ForwardContext& now();

 private:
  const ForwardContext* before_;
};

/// Lends a context for as long as it exists; the userdata stays on the stack of the call.
class LentForward {
 public:
  /// Pushes the userdata.
  LentForward(lua_State* L, const ForwardContext& context);
  ~LentForward() { *slot_ = nullptr; }
  LentForward(const LentForward&) = delete;
  LentForward& operator=(const LentForward&) = delete;

 private:
  const ForwardContext** slot_;
  ForwardUnderWay under_way_;
};

/// The context at `index`; null for nil. Throws for anything else, and for a context whose forward has returned.
const ForwardContext* context_at(lua_State* L, int index, const char* function);

/// A context for a call outside of a model: (.., T, C) or (B, T) in one document a row.
ForwardContext plain_context(const at::Tensor& x, std::int64_t length);

}  // namespace kf::lua
