#pragma once

#include "data/template/parser.h"
#include "data/template/template.h"

namespace kf::jinja {

/// Runs a block over variables.
Rendered evaluate(const Block& block, const Dict& variables);

}  // namespace kf::jinja
