#pragma once
// All trials of a sweep in one SQLite file, in Optuna's own storage schema (RDBStorage, schema 12, revision v3.2.0.a: Optuna 3.2 to 5), so
// that optuna.load_study and optuna-dashboard read it. Several workers may have it open; every change is one transaction.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "core/fs.h"
#include "sweep/draw.h"
#include "sweep/pruner.h"
#include "sweep/sqlite.h"
#include "sweep/trial.h"
#include "sweep/worker.h"

namespace kf::sweep {

class Store {
 public:
  /// Opens the file, making it (and its tables) when `mode` says so. Throws Code::other.
  Store(const fs::path& path, Database::Mode mode);

  /// The study called `name`, made when the file has none. Throws Code::data when the file holds another one.
  void open_study(const std::string& name, bool maximise);
  /// The file's one study, whatever its name.
  void open_study();
  const std::string& name() const { return name_; }
  bool maximise() const { return maximise_; }
  /// What the sweep notes about itself; null when it never did.
  config::Node attribute(const std::string& key);
  void set_attribute(const std::string& key, const config::Node& value);

  /// What is noted of trials that are on need not be on the disk at once (Database::relax); how they end is, unless `ends` says that
  /// another store of this process calls `settle` then.
  void relax(bool ends = false);
  /// What relaxed stores of this process have noted so far is on the disk. `id`: of the trial that has ended.
  void settle(std::int64_t id);

  /// By number.
  std::vector<Trial> trials();
  Trial trial(std::int64_t number);

  /// The next trial for `worker`: one that waits, else a new one below `limit` trials with what `next` gives (called inside the
  /// transaction: no two workers see the same trials). Nothing when there is none.
  std::optional<Trial> claim(std::optional<std::int64_t> limit, const Worker& worker,
                             const std::function<std::optional<Draw>(const std::vector<Trial>& trials, std::int64_t number)>& next);
  /// Trials that run although their worker (and its child) died go back in line, after kMaxAttempts as failed. How many.
  std::int64_t recover();
  /// Running trials whose process a signal killed end as failed, for this start of the sweep,
  void finish_killed(std::int64_t id, const std::string& error);
  /// and go back in line at the next one, up to kMaxAttempts times. How many.
  std::int64_t retry_killed();
  /// Failed trials go back in line. How many.
  std::int64_t retry_failed();

  void set_trial_attribute(std::int64_t id, const std::string& key, const config::Node& value);
  /// These trials are worked on.
  void beat(const std::vector<std::int64_t>& ids);
  /// Keeps a report; whether the trial should be cut is asked where `options` are given, of a trial that ends at `last_step` only before
  /// it. A cut is kept: a trial that was killed before it ended is cut again at the same step.
  bool report(std::int64_t id, std::int64_t step, double value, const std::optional<AshaOptions>& options,
              std::int64_t last_step = std::numeric_limits<std::int64_t>::max());
  /// The step at which the trial was cut.
  std::optional<std::int64_t> cut_at(std::int64_t id);
  /// Ends a running trial; nothing happens to one that has ended. A value that is not a number makes it failed.
  void finish(std::int64_t id, TrialState state, std::optional<double> value, const std::string& error = {});
  /// A running trial goes back in line, to be continued.
  void put_back(std::int64_t id);

  static constexpr std::int64_t kMaxAttempts = 5;
  static constexpr std::int64_t kGraceSeconds = 60;  // after the last heartbeat, for workers on other machines

 private:
  /// Without what other tables have of them.
  std::vector<Trial> heads(const std::string& where, const SqlValue& value);
  /// Several statements: to be called inside of a transaction.
  std::vector<Trial> read_trials(const std::string& where, const SqlValue& value);
  bool lost(const Trial& trial);
  std::vector<double> values_at_rung(std::int64_t rung, std::int64_t but_not);
  std::int64_t reached_rungs(std::int64_t id);
  void set_state(std::int64_t id, TrialState state);
  void put_in_line(std::int64_t id);
  std::string state_in_file(std::int64_t id);

  Database database_;
  std::int64_t study_ = 0;
  std::map<std::int64_t, Trial> ended_;  // by id: what has ended stays as it is, and is read once
  std::string name_;
  bool maximise_ = false;
  bool ends_relaxed_ = false;
};

}  // namespace kf::sweep
