// The store is read by Optuna itself where it can be had (scripts/optuna.sh puts it into .deps/optuna); the schema is checked in any case.

#include <cmath>

#include "support/process.h"
#include "support/temp_dir.h"
#include "sweep/proposer.h"
#include "sweep/store.h"
#include "unit/sweep/space.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;
using namespace kf::sweep::test;
using config::Node;

namespace {

/// Three complete trials, one pruned, one failed, one that runs.
void fill(const fs::path& file) {
  Definition definition;
  definition.seed = 1;
  definition.space = {entry("optimizer.lr", Distribution::real(1e-4, 1e-2, 0, true)),
                      values("optimizer.name", {Node(std::string("adamw")), Node(std::string("lion"))}),
                      entry("train.seed", Distribution::integer(1, 1000)), entry("model.dropout", Distribution::real(0, 0.5, 0.1)),
                      entry("optimizer.weight_decay", Distribution::real(0.1, 0.35, 0.1))};
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  Store store(file, Database::Mode::create);
  store.open_study("toy", true);
  store.set_attribute("definition", Node(identity(definition)));
  for (std::int64_t i = 0; i < 6; ++i) {
    const Trial trial =
        *store.claim(6, Worker::self(), [&](const auto& trials, std::int64_t number) { return source->next(trials, number); });
    store.report(trial.id, 1, 0.5, AshaOptions{1, 4});
    store.report(trial.id, 2, i == 0 ? std::nan("") : static_cast<double>(i), std::nullopt);
    if (i < 3) {
      store.finish(trial.id, TrialState::complete, i == 1 ? INFINITY : static_cast<double>(i));
    } else if (i < 5) {
      store.finish(trial.id, i == 3 ? TrialState::pruned : TrialState::fail, i == 3 ? std::optional(3.0) : std::nullopt,
                   i == 4 ? "why" : "");
    }
  }
}

constexpr const char* kProgram = R"(
import math, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="toy", storage="sqlite:///" + sys.argv[1])
assert study.direction == optuna.study.StudyDirection.MAXIMIZE
states = [t.state.name for t in study.trials]
assert states == ["COMPLETE", "COMPLETE", "COMPLETE", "PRUNED", "FAIL", "RUNNING"], states
assert [t.number for t in study.trials] == list(range(6))
assert study.best_trial.number == 1 and math.isinf(study.best_value)
t = study.trials[2]
assert set(t.params) == {"optimizer.lr", "optimizer.name", "train.seed", "model.dropout", "optimizer.weight_decay"}, t.params
assert t.distributions["optimizer.weight_decay"] == optuna.distributions.FloatDistribution(0.1, 0.3, step=0.1)
assert all(x.params["optimizer.weight_decay"] in (0.1, 0.2, 0.3) for x in study.trials)
copy = optuna.create_study(direction="maximize")  # which looks at every value and bound
copy.add_trials([x for x in study.trials if x.state.name != "RUNNING"])
assert len(copy.trials) == 5
assert isinstance(t.params["train.seed"], int) and t.params["optimizer.name"] in ("adamw", "lion")
assert all(d._contains(d.to_internal_repr(t.params[n])) for n, d in t.distributions.items())
assert t.user_attrs["values"]["optimizer.lr"] == t.params["optimizer.lr"]
assert math.isnan(study.trials[0].intermediate_values[2]) and t.intermediate_values == {1: 0.5, 2: 2.0}
assert study.trials[3].value == 3.0 and study.trials[4].user_attrs["error"] == "why"
assert t.datetime_complete >= t.datetime_start
study.sampler = optuna.samplers.TPESampler(seed=1)
trial = study.ask()  # and goes on with it
trial.suggest_float("optimizer.lr", 1e-4, 1e-2, log=True)
trial.suggest_categorical("optimizer.name", ["adamw", "lion"])
study.tell(trial, 4.0)
assert study.trials[6].value == 4.0
print("optuna", optuna.__version__, "read it")
)";

}  // namespace

TEST_CASE("sweep: the store has the tables, columns and version rows of Optuna's schema", "[sweep]") {
  const kf::test::TempDir dir;
  fill(dir / "study.db");
  Database raw(dir / "study.db", Database::Mode::existing);
  const std::vector<std::pair<std::string, std::string>> tables{
      {"studies", "study_id,study_name"},
      {"version_info", "version_info_id,schema_version,library_version"},
      {"study_directions", "study_direction_id,direction,study_id,objective"},
      {"study_user_attributes", "study_user_attribute_id,study_id,key,value_json"},
      {"study_system_attributes", "study_system_attribute_id,study_id,key,value_json"},
      {"trials", "trial_id,number,study_id,state,datetime_start,datetime_complete"},
      {"trial_user_attributes", "trial_user_attribute_id,trial_id,key,value_json"},
      {"trial_system_attributes", "trial_system_attribute_id,trial_id,key,value_json"},
      {"trial_params", "param_id,trial_id,param_name,param_value,distribution_json"},
      {"trial_values", "trial_value_id,trial_id,objective,value,value_type"},
      {"trial_intermediate_values", "trial_intermediate_value_id,trial_id,step,intermediate_value,intermediate_value_type"},
      {"trial_heartbeats", "trial_heartbeat_id,trial_id,heartbeat"},
      {"alembic_version", "version_num"}};
  for (const auto& [table, columns] : tables) {
    const auto rows = raw.run("SELECT group_concat(name) FROM pragma_table_info(?)", {table});
    CHECK(std::get<std::string>(rows[0][0]) == columns);
  }
  CHECK(std::get<std::string>(raw.run("SELECT version_num FROM alembic_version")[0][0]) == "v3.2.0.a");
  CHECK(std::get<std::int64_t>(raw.run("SELECT schema_version FROM version_info")[0][0]) == 12);
}

TEST_CASE("sweep: optuna.load_study reads the store, and goes on with it", "[sweep]") {
  const fs::path optuna = fs::path(KF_SOURCE_DIR) / ".deps" / "optuna";
  if (!fs::exists(optuna / "optuna")) {
    WARN("optuna is not in .deps/optuna (scripts/optuna.sh): only the schema was checked");
    return;
  }
  const kf::test::TempDir dir;
  fill(dir / "study.db");
  kf::test::Options options;
  options.env = {{"PYTHONPATH", optuna.string()}, {"PYTHONDONTWRITEBYTECODE", "1"}};
  options.cwd = dir.path();
  const kf::test::Finished done = kf::test::run({"python3", "-c", kProgram, (dir / "study.db").string()}, options);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Catch::Contains("read it"));
}
