#pragma once
// A child of a sweep: one trial, from the store's values to a value in the store.

#include "app/line/arguments.h"
#include "bindings/script/script.h"
#include "registry/registries.h"
#include "run/launch.h"

namespace kf {

/// When the sweep dies its trials stop, too: they get SIGTERM and save. To be called as early as can be.
void follow_sweep();

/// Trains the base with the trial's values and finishes the trial in the store. Stopped by a signal it saves, and leaves the trial to be
/// continued. Throws what goes wrong: the parent notes a failed trial. Of several ranks one writes into the store.
void run_trial(const TrainArguments& arguments, const Registries& registries, Script& script, const Launch& launch);

}  // namespace kf
