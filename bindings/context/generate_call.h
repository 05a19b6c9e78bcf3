#pragma once
// x:generate(prompt or prompts [, options]), of ctx and of loaded models: arguments and results.

#include <lua.hpp>

#include <functional>
#include <string>
#include <vector>

#include "generate/completion.h"

namespace kf::lua {

using GenerateFunction = std::function<std::vector<Completion>(const std::vector<std::string>& prompts, const GenerateOptions&)>;

/// The prompt is at 2, the options at 3; pushes text and information, or lists of them. `where` starts messages: "ctx:generate".
int call_generate(lua_State* L, const std::string& where, const GenerateOptions& defaults, const GenerateFunction& generate);

}  // namespace kf::lua
