#pragma once
// The explicit list of native parts; no static constructors.

#include "registry/registries.h"

namespace kf {

/// A registry of every kind, with the native parts in it and their kernels.
Registries native_registries();

}  // namespace kf
