#pragma once

#include <string_view>

#include "data/template/ast.h"

namespace kf::jinja {

struct Parsed {
  Block block;
  bool generation = false;  // there is a {% generation %}
};

/// Throws Code::config naming the line and what is not known.
Parsed parse(std::string_view source);

}  // namespace kf::jinja
