#pragma once
// Trials in the worker's own process (isolate = false).

#include <functional>
#include <string>

#include "app/line/arguments.h"
#include "config/schema/config.h"
#include "core/fs.h"
#include "sweep/definition.h"
#include "sweep/trial.h"

namespace kf {

/// Runs a script again, in this process, with a Lua of its own: here as the trial that TrainArguments::sweep_trial names.
using RunScript = std::function<void(const TrainArguments&)>;

/// Trains a trial of the sweep in `dir` and finishes it in the store, as a child of the worker would: it sees a script that begins anew,
/// what it writes goes to its output.txt, and what it changes of the process is as before behind it. "" or why it failed, in the words that
/// a child's failure has. Throws what concerns more than this trial.
std::string run_trial_here(const RunScript& run_script, const TrainArguments& arguments, const fs::path& dir, const sweep::Trial& trial);

/// Trials in one process share its memory and its devices, which a run would not give back: they compute on the CPU. Throws Code::config,
/// at the place of `isolate` in the script, where `config` takes a GPU.
void check_device_here(const sweep::Definition& definition, const config::Config& config);

/// As many threads as a trial that is a process of its own would have (OMP_NUM_THREADS), so that both come to the same bits.
void share_cores_here();

}  // namespace kf
