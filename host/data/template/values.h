#pragma once
// JSON as values of templates.

#include <string>
#include <string_view>

#include "data/template/value.h"

namespace kf::jinja {

/// `origin` wrote all texts in it, keys included. Throws Code::data with `name` for what is no JSON.
Value parse_value(std::string_view json, const std::string& name, Origin origin = 0);

}  // namespace kf::jinja
