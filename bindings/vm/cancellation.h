#pragma once
// Lua that may not go on for ever.

#include <lua.hpp>

#include <functional>

namespace kf::lua {

/// While one exists, Lua asks every few thousand instructions whether it shall go on. Machine code asks nobody: the compiler must be off
/// for what is to be ended. One at a time.
class Cancellation {
 public:
  /// `cancelled` outlives this; true ends what runs with the error "interrupted: WHY". Empty: nobody is asked.
  Cancellation(lua_State* L, const std::function<bool()>& cancelled, const char* why);
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

 private:
  static void on_count(lua_State* L, lua_Debug* ar);

  lua_State* L_;
  lua_Hook hook_;  // those before
  int mask_, count_;
};

}  // namespace kf::lua
