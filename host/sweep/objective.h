#pragma once
// What a sweep is about.

#include <string>

#include "sweep/store.h"

namespace kf::sweep {

/// The objective's name as the store's own note of it: "eval.loss".
std::string objective_name(Store& store);

}  // namespace kf::sweep
