#pragma once
// A script that returned a sweep: this process is one of its workers.

#include "app/arguments.h"
#include "bindings/script.h"
#include "registry/registries.h"

namespace kf {

/// Runs trials until there are no more, or until SIGINT; goes on where an earlier call stopped. Throws Code::config for what is wrong with
/// space, base or an earlier sweep of that name, and Code::other when no trial completed.
void run_sweep(const TrainArguments& arguments, const Registries& registries, Script& script);

}  // namespace kf
