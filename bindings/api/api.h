#pragma once
// What scripts see, as rows: names, types and words for lua/meta/kf.lua. A test compares them with what the runtime really has.

#include <span>
#include <string_view>

namespace kf::lua {

/// A field or function of a class: "kf.HookContext", "loss", "fun(self: kf.HookContext): number", "Of this step; waits for the device."
struct ApiRow {
  std::string_view owner;
  std::string_view name;
  std::string_view type;  // as LuaCATS writes it
  std::string_view doc;
  std::string_view unit = {};
};

/// In order; rows of one owner stand together.
std::span<const ApiRow> api_rows();

}  // namespace kf::lua
