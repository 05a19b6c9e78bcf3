#include "sweep/store.h"

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

#include "core/error.h"
#include "sweep/columns.h"

namespace kf::sweep {
namespace {

using config::Node;

/// As SQLAlchemy makes them from optuna/storages/_rdb/models.py.
constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));
CREATE UNIQUE INDEX IF NOT EXISTS ix_studies_study_name ON studies (study_name);
CREATE TABLE IF NOT EXISTS version_info (version_info_id INTEGER NOT NULL, schema_version INTEGER, library_version VARCHAR(256),
  PRIMARY KEY (version_info_id), CHECK (version_info_id=1));
CREATE TABLE IF NOT EXISTS study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL,
  objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id), UNIQUE (study_id, objective),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"), FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS study_system_attributes (study_system_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"), FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE IF NOT EXISTS trials (trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id), FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE INDEX IF NOT EXISTS ix_trials_study_id ON trials (study_id);
CREATE TABLE IF NOT EXISTS trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512),
  value_json TEXT, PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT,
  distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_values (trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL,
  value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id), UNIQUE (trial_id, objective),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL,
  step INTEGER NOT NULL, intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_intermediate_value_id),
  UNIQUE (trial_id, step), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, heartbeat DATETIME NOT NULL,
  PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT OR IGNORE INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version SELECT 'v3.2.0.a' WHERE NOT EXISTS (SELECT 1 FROM alembic_version);
)";
constexpr const char* kRevision = "v3.2.0.a";
constexpr const char* kCutAt = "kf:cut_at";       // the step at which a trial was cut
constexpr const char* kKilled = "killed";         // a signal ended its process
constexpr const char* kRung = "completed_rung_";  // the key of Optuna's own pruner

/// "2026-01-31 12:00:00.000000", UTC, as SQLAlchemy stores it.
std::string now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  const std::time_t seconds = micros / 1'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 40> day{};
  std::strftime(day.data(), day.size(), "%Y-%m-%d %H:%M:%S", &utc);
  std::string fraction = std::to_string(micros % 1'000'000);
  fraction.insert(0, 6 - fraction.size(), '0');
  return format("{}.{}", day.data(), fraction);
}

std::int64_t attempts_of(const Trial& trial) {
  const Node* node = trial.attributes.find("attempts");
  const auto* number = node != nullptr ? std::get_if<std::int64_t>(&node->value) : nullptr;
  return number != nullptr ? *number : 1;
}

}  // namespace

Store::Store(const fs::path& path, Database::Mode mode) : database_(path, mode) {
  if (mode == Database::Mode::create) {
    database_.write([&] { database_.script(kSchema); });
  }
  const auto rows = database_.run("SELECT name FROM sqlite_master WHERE name = 'alembic_version'");
  const auto version = rows.empty() ? rows : database_.run("SELECT version_num FROM alembic_version");
  KF_CHECK(!version.empty() && text(version[0][0]) == kRevision, Code::data, "{} is no study of schema {} ({}); move it aside", path,
           kRevision, version.empty() ? "it has none" : text(version[0][0]));
}

void Store::open_study(const std::string& name, bool maximise) {
  database_.write([&] {
    if (database_.run("SELECT 1 FROM studies WHERE study_name = ?", {name}).empty()) {
      database_.run("INSERT INTO studies (study_name) VALUES (?)", {name});
      database_.run("INSERT INTO study_directions (direction, study_id, objective) VALUES (?, ?, 0)",
                    {std::string(maximise ? "MAXIMIZE" : "MINIMIZE"), database_.last_id()});
    }
  });
  open_study();
  KF_CHECK(name_ == name, Code::data, "the file holds the study '{}', not '{}'", name_, name);
}

void Store::open_study() {
  const auto rows = database_.run(
      "SELECT s.study_id, s.study_name, d.direction FROM studies s JOIN study_directions d ON d.study_id = s.study_id AND d.objective = 0 "
      "ORDER BY s.study_id");
  KF_CHECK(rows.size() == 1, Code::data, "a sweep's file holds one study, this one {}", rows.size());
  study_ = integer(rows[0][0]);
  name_ = text(rows[0][1]);
  maximise_ = text(rows[0][2]) == "MAXIMIZE";
}

Node Store::attribute(const std::string& key) {
  const auto rows = database_.run("SELECT value_json FROM study_user_attributes WHERE study_id = ? AND \"key\" = ?", {study_, key});
  return rows.empty() ? Node() : json(text(rows[0][0]));
}

void Store::set_attribute(const std::string& key, const Node& value) {
  database_.run(
      "INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (?, ?, ?) "
      "ON CONFLICT (study_id, \"key\") DO UPDATE SET value_json = excluded.value_json",
      {study_, key, exact_json(value)});
}

std::optional<Trial> Store::claim(std::optional<std::int64_t> limit, const Worker& worker,
                                  const std::function<std::optional<Draw>(const std::vector<Trial>& trials, std::int64_t number)>& next) {
  return database_.write([&]() -> std::optional<Trial> {
    const std::vector<Trial> before = trials();
    for (const Trial& trial : before) {
      if (trial.state == TrialState::waiting) {
        database_.run("UPDATE trials SET state = 'RUNNING', datetime_start = coalesce(datetime_start, ?) WHERE trial_id = ?",
                      {now(), trial.id});
        set_trial_attribute(trial.id, "worker", worker.to_node());
        beat({trial.id});
        return this->trial(trial.number);
      }
    }
    const auto number = static_cast<std::int64_t>(before.size());
    if (limit && number >= *limit) {
      return std::nullopt;
    }
    const std::optional<Draw> draw = next(before, number);
    if (!draw) {
      return std::nullopt;
    }
    database_.run("INSERT INTO trials (number, study_id, state, datetime_start) VALUES (?, ?, 'RUNNING', ?)", {number, study_, now()});
    const std::int64_t id = database_.last_id();
    for (const Parameter& p : draw->parameters) {
      database_.run("INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?, ?, ?, ?)",
                    {id, p.name, p.stored, p.distribution.to_json()});
    }
    set_trial_attribute(id, "values", Node(draw->values));
    set_trial_attribute(id, "worker", worker.to_node());
    beat({id});
    return this->trial(number);
  });
}

bool Store::lost(const Trial& trial) {
  const Node* node = trial.attributes.find("worker");
  const Worker worker = node != nullptr ? Worker::from_node(*node) : Worker();
  if (worker.on_this_machine()) {
    const Node* child = trial.attributes.find("process");
    return !worker.process.alive() && (child == nullptr || !Worker::from_node(*child).process.alive());
  }
  const auto rows =
      database_.run("SELECT strftime('%s', 'now') - strftime('%s', heartbeat) FROM trial_heartbeats WHERE trial_id = ?", {trial.id});
  return !rows.empty() && integer(rows[0][0]) > kGraceSeconds;
}

std::int64_t Store::recover() {
  return database_.write([&] {
    std::int64_t found = 0;
    for (const Trial& trial : read_trials("state = 'RUNNING' AND study_id = ?", study_)) {
      if (!lost(trial)) {
        continue;
      }
      ++found;
      if (attempts_of(trial) >= kMaxAttempts) {
        finish(trial.id, TrialState::fail, std::nullopt, format("its worker died {} times", kMaxAttempts));
      } else {
        set_trial_attribute(trial.id, "attempts", Node(attempts_of(trial) + 1));
        set_state(trial.id, TrialState::waiting);
      }
    }
    return found;
  });
}

void Store::finish_killed(std::int64_t id, const std::string& error) {
  database_.write([&] {
    if (state_in_file(id) == "RUNNING") {
      set_trial_attribute(id, kKilled, Node(true));
      finish(id, TrialState::fail, std::nullopt, error);
    }
  });
}

std::int64_t Store::retry_killed() {
  return database_.write([&] {
    std::int64_t found = 0;
    for (const Trial& trial : read_trials("state = 'FAIL' AND study_id = ?", study_)) {
      if (trial.attributes.find(kKilled) != nullptr && attempts_of(trial) < kMaxAttempts) {
        ++found;
        put_in_line(trial.id);
        set_trial_attribute(trial.id, "attempts", Node(attempts_of(trial) + 1));
      }
    }
    return found;
  });
}

void Store::put_in_line(std::int64_t id) {
  database_.run("UPDATE trials SET state = 'WAITING', datetime_complete = NULL WHERE trial_id = ?", {id});
  database_.run("DELETE FROM trial_user_attributes WHERE trial_id = ? AND \"key\" IN ('error', 'attempts', 'killed')", {id});
  database_.run("DELETE FROM trial_values WHERE trial_id = ?", {id});
}

std::int64_t Store::retry_failed() {
  return database_.write([&] {
    std::int64_t found = 0;
    for (const Trial& trial : read_trials("state = 'FAIL' AND study_id = ?", study_)) {
      ++found;
      put_in_line(trial.id);
    }
    return found;
  });
}

void Store::set_trial_attribute(std::int64_t id, const std::string& key, const Node& value) {
  database_.run(
      "INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?) "
      "ON CONFLICT (trial_id, \"key\") DO UPDATE SET value_json = excluded.value_json",
      {id, key, exact_json(value)});
}

void Store::beat(const std::vector<std::int64_t>& ids) {
  for (const std::int64_t id : ids) {
    database_.run(
        "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES (?, datetime('now')) "
        "ON CONFLICT (trial_id) DO UPDATE SET heartbeat = excluded.heartbeat",
        {id});
  }
}

std::int64_t Store::reached_rungs(std::int64_t id) {
  const auto rows = database_.run(
      "SELECT count(*) FROM trial_system_attributes WHERE trial_id = ? AND \"key\" LIKE 'completed\\_rung\\_%' "
      "ESCAPE '\\'",
      {id});
  return integer(rows[0][0]);
}

std::vector<double> Store::values_at_rung(std::int64_t rung, std::int64_t but_not) {
  std::vector<double> out;
  for (const SqlRow& row : database_.run("SELECT a.value_json FROM trial_system_attributes a JOIN trials t ON t.trial_id = a.trial_id "
                                         "WHERE t.study_id = ? AND a.\"key\" = ? AND t.trial_id <> ?",
                                         {study_, kRung + std::to_string(rung), but_not})) {
    const Node node = json(text(row[0]));
    const auto* value = std::get_if<double>(&node.value);
    const auto* whole = std::get_if<std::int64_t>(&node.value);
    if (value != nullptr || whole != nullptr) {
      out.push_back(value != nullptr ? *value : static_cast<double>(*whole));
    }
  }
  return out;
}

std::optional<std::int64_t> Store::cut_at(std::int64_t id) {
  const auto rows =
      database_.run("SELECT value_json FROM trial_system_attributes WHERE trial_id = ? AND \"key\" = ?", {id, std::string(kCutAt)});
  const Node node = rows.empty() ? Node() : json(text(rows[0][0]));
  const auto* const step = std::get_if<std::int64_t>(&node.value);
  return step != nullptr ? std::optional(*step) : std::nullopt;
}

bool Store::report(std::int64_t id, std::int64_t step, double value, const std::optional<AshaOptions>& options, std::int64_t last_step) {
  return database_.write([&] {
    const Stored columns = stored(value);
    database_.run(
        "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (trial_id, step) DO UPDATE SET intermediate_value = excluded.intermediate_value, "
        "intermediate_value_type = excluded.intermediate_value_type",
        {id, step, columns.value, columns.type});
    if (!options) {
      return false;
    }
    const std::int64_t before = reached_rungs(id);
    const AshaVerdict verdict = asha(*options, maximise_, before, step, value, [&](std::int64_t rung) { return values_at_rung(rung, id); });
    for (std::int64_t rung = before; rung < verdict.rungs; ++rung) {
      database_.run("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
                    {id, kRung + std::to_string(rung), exact_json(Node(value))});
    }
    if (const std::optional<std::int64_t> cut = cut_at(id)) {
      return step >= *cut && step < last_step;
    }
    const bool cut = verdict.prune && step < last_step;
    if (cut) {
      database_.run("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
                    {id, std::string(kCutAt), exact_json(Node(step))});
    }
    return cut;
  });
}

std::string Store::state_in_file(std::int64_t id) {
  const auto rows = database_.run("SELECT state FROM trials WHERE trial_id = ?", {id});
  return rows.empty() ? "" : text(rows[0][0]);
}

void Store::set_state(std::int64_t id, TrialState state) {
  database_.run("UPDATE trials SET state = ? WHERE trial_id = ?", {std::string(state_name(state)), id});
}

namespace {

/// What is committed meanwhile is on the disk, also where the rest is not at once.
class OnDisk {
 public:
  explicit OnDisk(Database& database, bool wanted = true)
      : database_(database), relaxed_(wanted && database.relaxed() && !database.in_transaction()) {
    if (relaxed_) {
      database_.relax(false);
    }
  }
  ~OnDisk() {
    if (relaxed_) {
      database_.relax(true);
    }
  }
  OnDisk(const OnDisk&) = delete;
  OnDisk& operator=(const OnDisk&) = delete;

 private:
  Database& database_;
  bool relaxed_;
};

/// What a trial ends with: Optuna has no complete trial whose value is not a number.
struct Ending {
  TrialState state;
  std::string error;
};
Ending ending(TrialState state, const std::optional<double>& value, const std::string& error) {
  const bool valued = state == TrialState::complete;
  if (valued && (!value || std::isnan(*value))) {
    return {TrialState::fail, "the objective is not a number"};
  }
  return {state, error};
}

}  // namespace

void Store::relax(bool ends) {
  database_.relax(true);
  ends_relaxed_ = ends;
}

void Store::settle(std::int64_t id) {
  if (database_.relaxed()) {
    const OnDisk on_disk(database_);
    beat({id});  // a commit takes all earlier ones with it
  }
}

void Store::finish(std::int64_t id, TrialState state, std::optional<double> value, const std::string& error) {
  const OnDisk on_disk(database_, !ends_relaxed_);
  database_.write([&] {
    if (state_in_file(id) != "RUNNING") {
      return;
    }
    const Ending end = ending(state, value, error);
    if (value && !std::isnan(*value) && end.state != TrialState::fail) {
      const Stored columns = stored(*value);
      database_.run("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, ?)",
                    {id, columns.value, columns.type});
    }
    if (!end.error.empty()) {
      set_trial_attribute(id, "error", Node(end.error));
    }
    database_.run("UPDATE trials SET state = ?, datetime_complete = ? WHERE trial_id = ?", {std::string(state_name(end.state)), now(), id});
  });
}

void Store::put_back(std::int64_t id) {
  const OnDisk on_disk(database_, !ends_relaxed_);
  database_.write([&] {
    if (state_in_file(id) == "RUNNING") {
      set_state(id, TrialState::waiting);
    }
  });
}

}  // namespace kf::sweep
