#pragma once

#include "bindings/script/script.h"

namespace kf {

class World;

/// From here to the end of the run's scope, kf.mesh and kf.dist have these ranks.
void show_world(const Script::RunScope& run, const World& world);

}  // namespace kf
