#pragma once
// lua/meta/kf.lua: what lua-language-server completes and explains, from the rows of the settings and of the API.

#include <string>

namespace kf::lua {

/// The whole file.
std::string meta_text();

}  // namespace kf::lua
