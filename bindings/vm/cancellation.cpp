#include "bindings/vm/cancellation.h"

namespace kf::lua {
namespace {

const std::function<bool()>* asked = nullptr;  // Lua has one thread
const char* reason = "";

}  // namespace

Cancellation::Cancellation(lua_State* L, const std::function<bool()>& cancelled, const char* why)
    : L_(L), hook_(lua_gethook(L)), mask_(lua_gethookmask(L)), count_(lua_gethookcount(L)) {
  asked = cancelled ? &cancelled : nullptr;
  reason = why;
  if (asked != nullptr) {
    lua_sethook(L, on_count, LUA_MASKCOUNT, 5000);
  }
}

Cancellation::~Cancellation() {
  asked = nullptr;
  if (lua_gethook(L_) == on_count) {  // a signal may have put its own there
    lua_sethook(L_, hook_, mask_, count_);
  }
}

void Cancellation::on_count(lua_State* L, lua_Debug* /*ar*/) {
  if (asked != nullptr && (*asked)()) {
    luaL_error(L, "interrupted: %s", reason);
  }
}

}  // namespace kf::lua
