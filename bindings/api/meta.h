#pragma once
// lua/meta/kf.lua: what lua-language-server completes and explains, from the rows of the settings and of the API.

#include <string>

namespace kf::lua {

/// The whole file.
std::string meta_text();

/// docs/api.md: the same rows as tables, without operators and settings.
std::string api_markdown();

}  // namespace kf::lua
