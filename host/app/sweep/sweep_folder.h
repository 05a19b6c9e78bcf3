#pragma once
// A sweep's folder: the store, and the files that are written anew whenever a trial ends.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/load/load.h"
#include "core/fs.h"
#include "sweep/definition.h"
#include "sweep/store.h"

namespace kf {

/// The store of a finished or running sweep. Throws Code::config where `dir` holds none.
std::unique_ptr<sweep::Store> open_sweep(const fs::path& dir);

/// Writes trials.csv; of a better trial than before also best.toml, from `best_toml` (settings of the best trial as text).
void write_sweep_files(const fs::path& dir, sweep::Store& store, const std::vector<sweep::Trial>& trials,
                       const std::function<std::string(const sweep::Trial&)>& best_toml);

/// The base with a trial's values laid over it: a recipe.
config::Node trial_recipe(const sweep::Definition& definition, const sweep::Trial& trial);

/// The overrides without run.fresh, run.name and run.dir, which concern the sweep and not its trials.
std::vector<std::string> trial_overrides(const std::vector<std::string>& overrides);

}  // namespace kf
