#pragma once
// Layers written in Lua: mlp, norm, attention, block, model. Each registers the factory at stack index 2.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// factory{ config, options, dim, hidden_dim } -> module: (.., C) -> (.., C)
void add_mlp(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options, dim, eps } -> module: (.., C) -> (.., C)
void add_norm(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options, dim, out_dim, layer_name } -> module: x (.., dim) -> what a linear layer of that name gives besides (..,
/// out_dim)
void add_adapter(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options, dim, n_heads, n_kv_heads, head_dim, layer } -> module: x (B, T, C), ctx -> (B, T, C)
void add_attention(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options, layer, hidden_dim } -> module: x (B, T, C), ctx -> (B, T, C)
void add_block(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options } -> module: tokens (B, T), ctx -> logits (B, T, V)
void add_model(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
