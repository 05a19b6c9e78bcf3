#include "app/sweep/sweep_trial.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>

#include "app/sweep/sweep_folder.h"
#include "app/sweep/sweep_here.h"
#include "core/error.h"
#include "core/group_sync.h"
#include "core/log_keep.h"
#include "core/plain_file.h"
#include "parallel/group.h"
#include "run/run.h"
#include "sweep/runner.h"
#include "train/loop/controls.h"

namespace kf {
namespace {

using config::Node;

/// What a trial says of itself while it runs, and what the pruner answers.
class Reports {
 public:
  Reports(sweep::Store& store, std::int64_t trial, std::optional<sweep::AshaOptions> options)
      : store_(store), trial_(trial), options_(options) {}

  /// True: the trial is to end. A finished trial is not cut any more.
  bool report(std::int64_t step, std::int64_t max_steps, double value) {
    const bool cut = store_.report(trial_, step, value, options_, max_steps);
    pruned_ = pruned_ || cut;
    last_ = value;
    return cut;
  }

  /// The script reports by itself: evaluations no longer do.
  void by_hand() { by_hand_ = true; }
  bool automatic() const { return !by_hand_; }
  bool pruned() const { return pruned_; }
  double last() const { return last_; }

 private:
  sweep::Store& store_;
  std::int64_t trial_;
  std::optional<sweep::AshaOptions> options_;
  bool by_hand_ = false;
  bool pruned_ = false;
  double last_ = 0;
};

/// Reports the objective at each evaluation.
class ReportHook final : public Hook {
 public:
  ReportHook(Reports& reports, std::string objective) : reports_(reports), objective_(std::move(objective)) {}

  std::string name() const override { return "sweep trial"; }
  bool wants(Event event, std::int64_t /*step*/) const override { return event == Event::eval_end; }

  void call(Event /*event*/, HookContext& context) override {
    if (!reports_.automatic() || !context.eval) {
      return;
    }
    const std::optional<double> value = value_of(context);
    if (value && reports_.report(context.state.step, context.max_steps, *value)) {
      context.controls->stop = "pruned";
    }
  }

 private:
  /// Of an objective that is no number of an evaluation: nothing.
  std::optional<double> value_of(const HookContext& context) const {
    if (objective_.starts_with("eval.")) {
      return find_number(*context.eval, objective_.substr(5));
    }
    return objective_ == "loss" && context.loss ? context.loss() : std::nullopt;
  }

  Reports& reports_;
  std::string objective_;
};

struct TrialName {
  fs::path dir;
  std::int64_t number;
};
TrialName parse_name(const std::string& text) {
  const std::size_t mark = text.rfind('#');
  const std::string number = mark == std::string::npos ? "" : text.substr(mark + 1);
  const bool digits = !number.empty() && number.size() < 10 && std::all_of(number.begin(), number.end(), ::isdigit);
  KF_CHECK(digits, Code::config, "--sweep-trial={}: this option is the sweep's own; run the script without it", text);
  return {text.substr(0, mark), std::stoll(number)};
}

class TrialRun {
 public:
  TrialRun(const TrainArguments& arguments, const Registries& registries, Script& script, Launch launch)
      : arguments_(arguments),
        registries_(registries),
        script_(script),
        launch_(std::move(launch)),
        name_(parse_name(arguments.sweep_trial)),
        store_(open_sweep(name_.dir)),
        trial_(store_->trial(name_.number)) {}

  void run() {
    const Node* worker = trial_.attributes.find("worker");
    const pid_t owner = worker != nullptr ? sweep::Worker::from_node(*worker).process.pid : -1;
    here_ = owner == ::getpid();
    // Of several ranks the parent is their launcher, which follows the sweep.
    KF_CHECK(here_ || (owner > 0 && (launch_.world() > 1 || owner == ::getppid())), Code::other,
             "the sweep that started this trial has ended");
    KF_CHECK(script_.sweep() != nullptr, Code::script, "{} returned no sweep this time; it must do the same in every trial",
             arguments_.file);
    std::optional<GroupSync> group;
    if (here_) {
      store_->relax(/*ends=*/true);     // the worker settles it
    } else if (launch_.world() == 1) {  // what other ranks write is not in the group of the one that names the checkpoint
      group.emplace();
    }
    try {
      if (!train(/*fresh=*/false)) {
        train(/*fresh=*/true);
      }
    } catch (const std::exception& error) {
      note_failure(error.what());
      throw;
    }
  }

 private:
  /// A run that came to nothing before it had a log: its folder says why all the same. What was said before is said there, and not in the
  /// log of the next trial in this process.
  void note_failure(const std::string& message) const {
    if (!launch_.leads()) {
      return;
    }
    const fs::path log_file = fs::path(sweep::Runner::trial_folder(name_.dir, trial_.number)) / "log.txt";
    const bool told = path_exists(log_file);
    log::open_file(log_file);
    if (!told) {
      log::keep(message, log::Level::error);
    }
    log::close_file();
  }

  /// False when the run had been complete before its process could write the value, and the value is not known any more.
  bool train(bool fresh) {
    const config::Loaded loaded = config::load_or_fail(request(fresh), registries_.catalog());
    if (here_) {
      check_device_here(*script_.sweep(), loaded.config);
    }
    Reports reports(*store_, trial_.id, prune_options(loaded.config));
    const std::string objective = script_.sweep()->objective;
    const Script::RunScope scope(script_, loaded.config);
    RunRequest run_request{loaded, scope, arguments_.file, arguments_.overrides.size()};
    run_request.of_sweep = true;
    run_request.launch = launch_;
    if (launch_.leads()) {
      run_request.hook = [&] { return std::make_unique<ReportHook>(reports, objective); };
    }
    run_request.report = [&, max_steps = loaded.config.train.max_steps](std::int64_t step, double value) {
      reports.by_hand();
      return launch_.leads() && reports.report(step, max_steps, value);  // that it is to end is agreed upon
    };
    const RunResult result = run_job(run_request, registries_);
    const bool known = !launch_.leads() || finish(result, reports, loaded.config.train.max_steps);
    return all_know(known, loaded.config);
  }

  /// Of several ranks the leader knows.
  bool all_know(bool known, const config::Config& config) {
    const std::chrono::seconds patience(config.distributed.nccl_timeout_sec);
    return launch_.world() == 1 ? known : launch_.all(patience)->tell(known ? "known" : "").front() == "known";
  }

  config::Request request(bool fresh) const {
    config::Request out;
    out.overrides = trial_overrides(arguments_.overrides);
    out.world = launch_.world();
    Node recipe = trial_recipe(*script_.sweep(), trial_);
    const config::Origin origin = script_.sweep()->place;
    sweep::set_at(*recipe.table(), "run.name", Node(format("{}-{}", store_->name(), trial_.number), origin));
    sweep::set_at(*recipe.table(), "run.dir", Node(sweep::Runner::trial_folder(name_.dir, trial_.number).string(), origin));
    sweep::set_at(*recipe.table(), "run.fresh", Node(fresh, origin));
    out.recipe = std::move(recipe);
    return out;
  }

  std::optional<sweep::AshaOptions> prune_options(const config::Config& config) const {
    std::optional<sweep::AshaOptions> options = script_.sweep()->prune;
    if (options && options->min_resource == 0) {
      options->min_resource = std::max<std::int64_t>(1, config.train.max_steps / 100);
    }
    return options;
  }

  bool finish(const RunResult& result, const Reports& reports, std::int64_t max_steps) {
    if (!here_) {
      GroupSync::flush();
    }
    const std::optional<std::int64_t> cut = store_->cut_at(trial_.id);
    if (reports.pruned()) {
      store_->finish(trial_.id, sweep::TrialState::pruned, reports.last());
    } else if (cut && result.step >= *cut && result.step < max_steps) {  // by an earlier process, which was killed before it could say so
      store_->finish(trial_.id, sweep::TrialState::pruned, store_->trial(name_.number).reports.at(*cut));
    } else if (result.status == "complete" && result.history.empty()) {
      const std::optional<double> value = last_report();
      if (!value) {
        return false;
      }
      store_->finish(trial_.id, sweep::TrialState::complete, value);
    } else if (result.status != "stopped" || result.reason != "signal") {
      store_->finish(trial_.id, sweep::TrialState::complete, script_.objective(result));
    }
    return true;
  }

  /// What the run reported last, where that is the objective.
  std::optional<double> last_report() const {
    const std::map<std::int64_t, double> reports = store_->trial(trial_.number).reports;
    const std::string& objective = script_.sweep()->objective;
    const bool known = !reports.empty() && objective.starts_with("eval.");
    return known ? std::optional(reports.rbegin()->second) : std::nullopt;
  }

  const TrainArguments& arguments_;
  const Registries& registries_;
  Script& script_;
  Launch launch_;
  TrialName name_;
  std::unique_ptr<sweep::Store> store_;
  sweep::Trial trial_;
  bool here_ = false;  // in the process of the worker
};

}  // namespace

void follow_sweep() { ::prctl(PR_SET_PDEATHSIG, SIGTERM); }

void run_trial(const TrainArguments& arguments, const Registries& registries, Script& script, const Launch& launch) {
  TrialRun(arguments, registries, script, launch).run();
}

}  // namespace kf
