#pragma once
// For those who see simdjson.

#include <simdjson.h>

#include "data/template/value.h"

namespace kf::jinja {

/// `origin` wrote all texts in it, keys included.
Value value_of(const simdjson::dom::element& element, Origin origin);

}  // namespace kf::jinja
