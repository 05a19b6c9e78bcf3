#pragma once
// One run as a straight line: settings to parts, resume, training, the closing words.

#include <functional>
#include <memory>

#include "bindings/script/script.h"
#include "config/load/load.h"
#include "core/fs.h"
#include "metrics/run_result.h"
#include "registry/registries.h"
#include "run/launch.h"
#include "train/loop/hook.h"

namespace kf {

class Probe;

/// What the settings cannot tell.
struct RunRequest {
  const config::Loaded& loaded;
  const Script::RunScope& scope;  // of the run's script: the one that the job comes from, or an empty one
  fs::path file;                  // the job or script, for the first line and the run's default name
  std::size_t overrides = 0;      // how many, for the first line
  bool from_folder = false;       // started as `kf-host runs/NAME`
  bool of_sweep = false;          // a trial: the sweep starts it again
  /// Of a sweep's trial: takes what it reports; true ends the run.
  std::function<bool(std::int64_t step, double value)> report = {};
  /// One more hook, called behind the job's own; may be empty.
  std::function<std::unique_ptr<Hook>()> hook = {};
  /// The settings that the run's script stands for when it is read again (kf-host reload): of its job's table, or nothing where it has
  /// none, under the overrides of the run, with the parts that it registers. Empty: it cannot be read again.
  std::function<config::Loaded(config::Node job, const config::Catalog& parts)> reread = {};
  Probe* probe = nullptr;       // looks at one update; null: there is none
  std::int64_t only_until = 0;  // the run only looks: it ends behind this step, and saves nothing; 0: it goes to its own end
  Launch launch = {};           // this process among those that train together
  std::int64_t call = 0;        // which kf.run of the script it is, from 1; 0: none
  /// Of a run that is reproduced: called by the leader when the folder and its record are there, before the first step; may be empty.
  std::function<void(const fs::path& dir)> opened = {};
  config::Node products = {};  // likewise: what computed matrix products then (run/run_products.h)
};

/// Trains the job, or says that it is complete already. Nothing is created on disk before every check has passed. Throws what goes wrong;
/// of several processes all throw what went wrong on one, with its rank.
RunResult run_job(const RunRequest& request, const Registries& registries);

}  // namespace kf
