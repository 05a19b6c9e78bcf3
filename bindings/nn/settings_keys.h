#pragma once
// The first two arguments of layers that are described by [model] keys.

#include <lua.hpp>

#include <cstdint>

#include "bindings/session/session.h"
#include "config/schema/config.h"
#include "model/layer/place.h"
#include "registry/registries.h"

namespace kf::lua {

/// The settings that the factory which runs now builds for, else the defaults.
config::Config base_config();

/// The place of a layer that nobody placed (layer < 0: that of the factory): shares its rotary tables with the others of its model.
Place place_of(std::int64_t layer, std::int64_t dim, std::int64_t hidden);

struct Settings {
  config::Config config;
  std::int64_t layer = -1;  // -1: not given
};

/// (settings [, { layer = 0, key = value }]) at 1 and 2; `where` starts messages. Each value is checked by its row.
Settings read_settings(lua_State* L, const Session& session, const char* where);

/// The rules about experts, for a layer that has them.
void check_experts(const Settings& settings, const char* where);

}  // namespace kf::lua
