#pragma once
// The last table of a layer's constructor, read key by key, and the settings that a factory builds for.

#include <lua.hpp>

#include <initializer_list>
#include <optional>
#include <string>

#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf::lua {

/// A table of options at a stack index, or none.
class LayerOptions {
 public:
  /// `where` starts messages: "nn.linear". Throws Code::script for another type, and for a key that is none of `known`.
  LayerOptions(lua_State* L, int index, std::string where, std::initializer_list<const char*> known);

  double number(const char* key, double fallback) const;
  std::int64_t integer(const char* key, std::int64_t fallback) const;
  bool flag(const char* key, bool fallback) const;
  std::string text(const char* key, const std::string& fallback) const;
  /// init = "normal" | "output" | "embedding" | "zeros" | "ones" | a standard deviation | a tensor, for a weight of `fan_in` inputs.
  Init init(const std::string& fallback, std::int64_t fan_in) const;
  /// role = "hidden" | "embedding" | "head" | "router" | "vector".
  Role role(Role fallback) const;
  /// shard = "colwise" | "rowwise" | "sequence" | "replicate", for a weight of `dims` dims; nothing without one.
  std::optional<Split> shard(std::int64_t dims) const;

 private:
  /// Pushes the value; false (and nothing pushed) when there is none.
  bool push(const char* key) const;

  lua_State* L_;
  int index_;  // 0: no table
  std::string where_;
};

/// The model's settings that a factory builds for, the defaults outside of one.
const config::ModelConfig& current_model();

/// The positive whole number at `index`: "nn.linear: expected the input width (a whole number above 0), got 'x'".
std::int64_t check_size(lua_State* L, int index, const char* where, const char* what);

}  // namespace kf::lua
