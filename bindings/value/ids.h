#pragma once
// Token ids between Lua and C++: lists of whole numbers, or int64 tensors.

#include <lua.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kf::lua {

/// The ids at `index`. Throws Code::script for anything else than ids from 0 to `vocab_size` - 1; `where` starts the messages.
std::vector<std::int64_t> read_ids(lua_State* L, int index, std::int64_t vocab_size, const std::string& where);
/// The same into `out`: exactly as many.
void read_ids(lua_State* L, int index, std::span<std::int64_t> out, std::int64_t vocab_size, const std::string& where);
/// A list.
void push_ids(lua_State* L, std::span<const std::int64_t> ids);

}  // namespace kf::lua
