#pragma once
// A script that returned a sweep: this process is one of its workers.

#include "app/line/arguments.h"
#include "app/sweep/sweep_here.h"
#include "bindings/script/script.h"
#include "config/tree/node.h"
#include "registry/registries.h"
#include "sweep/definition.h"

namespace kf {

class Launch;

/// Runs trials until there are no more, or until SIGINT, each as a process or by `run_script` in this one, as the sweep says; goes on where
/// an earlier call stopped. Throws Code::config for what is wrong with space, base or an earlier sweep of that name and for several ranks,
/// and Code::other when no trial completed.
void run_sweep(const TrainArguments& arguments, const Registries& registries, Script& script, const Launch& launch,
               const RunScript& run_script);

/// Checks what does not depend on a trial, prints space, method and how many trials there would be, and returns the job of the first one
/// that can be drawn, for a dry run of its own. Writes nothing. Throws as run_sweep does.
config::Node dry_run_sweep(const TrainArguments& arguments, const Registries& registries, sweep::Definition& definition,
                           const Launch& launch);

}  // namespace kf
