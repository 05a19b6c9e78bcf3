#pragma once
// Layers that the settings describe, from the registries: nn.norm, nn.attention, nn.mlp, nn.moe.

#include <lua.hpp>

namespace kf::lua {

/// nn.norm(type, dim [, eps]): a registered norm.
int make_norm_layer(lua_State* L);
/// nn.attention(settings [, { layer = 0, key = value }]): the registered attention that the [model] keys name. `settings` is a.config.model
/// or a table of keys; further keys of [model] may stand beside `layer`.
int make_attention_layer(lua_State* L);
/// nn.mlp(activation, dim, hidden_dim): a registered mlp.
int make_mlp_layer(lua_State* L);
/// nn.moe(settings [, { layer = 0, key = value }]): router, experts and shared experts by the [model] keys, x (.., C) -> (.., C). Its
/// losses and selection biases belong to the model that it is part of.
int make_moe_layer(lua_State* L);

}  // namespace kf::lua
