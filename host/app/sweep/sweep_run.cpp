#include "app/sweep/sweep_run.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "app/sweep/sweep_folder.h"
#include "app/sweep/sweep_here.h"
#include "app/sweep/trial_output.h"
#include "bindings/session/config_view.h"
#include "config/show/emit.h"
#include "core/cores.h"
#include "core/error.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "core/visible_gpus.h"
#include "run/invocation.h"
#include "run/launch.h"
#include "sweep/chart.h"
#include "sweep/devices.h"
#include "sweep/files.h"
#include "sweep/objective.h"
#include "sweep/runner.h"
#include "sweep/table.h"

namespace kf {
namespace {

using config::Node;

/// 0 unless standard output is a terminal that can redraw.
int terminal_columns() {
  const char* const term = std::getenv("TERM");
  if (::isatty(STDOUT_FILENO) == 0 || term == nullptr || std::string_view(term) == "dumb") {
    return 0;
  }
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

class SweepWorker {
 public:
  /// `run_script` may be empty where nothing runs.
  SweepWorker(const TrainArguments& arguments, const Registries& registries, sweep::Definition& definition, RunScript run_script = {})
      : arguments_(arguments), catalog_(registries.catalog()), definition_(definition), run_script_(std::move(run_script)) {}

  void run() {
    const config::Loaded base = checked_base();
    const std::unique_ptr<sweep::Proposer> source = sweep::make_proposer(definition_);
    const std::optional<std::int64_t> limit = trial_limit(*source);
    if (definition_.method != sweep::Method::function) {
      source->next({}, 0);  // mistakes in functions of the script show here, before anything is written
    }
    open(base.config);
    print_start(limit);
    const bool finished = work(*source, limit);
    print_end(finished);
  }

  /// All of it but trials and files; returns the first trial's recipe.
  Node dry_run() {
    const config::Loaded base = checked_base();
    const std::unique_ptr<sweep::Proposer> source = sweep::make_proposer(definition_);
    name_folder(base.config);
    const std::optional<sweep::Draw> first = source->next({}, 0);
    KF_CHECK(first.has_value(), Code::config, "the sweep '{}' gives no trial", name_);
    print_start(trial_limit(*source));
    for (const sweep::Entry& entry : definition_.space) {
      std::cout << "  " << entry.name << " = " << rule_text(entry) << '\n';
    }
    if (path_exists(dir_ / "study.db") && !base.config.run.fresh) {
      std::cout << "it would go on: " << sweep::summary(open_sweep(dir_)->trials()) << '\n';
    }
    std::cout << "the first trial (of no earlier one):";
    for (const auto& [key, value] : first->values) {
      std::cout << ' ' << key << '=' << config::brief(value);
    }
    std::cout << std::endl;
    sweep::Trial trial;
    trial.attributes["values"] = Node(first->values);
    return trial_recipe(definition_, trial);
  }

 private:
  config::Loaded checked_base() const {
    check_space();
    name_base();
    config::Loaded base = load_base();
    definition_.base_tree = lua::job_tree(base.config);
    check_base(base.config);
    return base;
  }

  static std::string rule_text(const sweep::Entry& entry) {
    if (const auto* value = std::get_if<Node>(&entry.rule)) {
      return config::brief(*value);
    }
    if (const auto* drawn = std::get_if<sweep::Distribution>(&entry.rule)) {
      return drawn->describe();
    }
    const auto* choice = std::get_if<std::shared_ptr<const sweep::Choice>>(&entry.rule);
    return choice != nullptr ? format("one of {} groups of settings", (*choice)->options.size()) : "a function of the script";
  }

  void check_space() const {
    config::Report report;
    report.problems = sweep::check_space(definition_, catalog_, arguments_.overrides);
    if (!report.problems.empty()) {
      throw Error(Code::config, config::to_text(report));
    }
  }

  /// Like a script's run, a sweep is called after the script unless its own table has a name.
  void name_base() const {
    config::Table& table = *definition_.base.table();
    const Node* run = table.find("run");
    if (run == nullptr || (run->table() != nullptr && run->table()->find("name") == nullptr)) {
      sweep::set_at(table, "run.name", Node(fs::path(arguments_.file).stem().string(), definition_.place));
    }
  }

  config::Loaded load(Node recipe) const {
    config::Request request;
    request.overrides = arguments_.overrides;
    request.world = definition_.ranks;
    request.recipe = std::move(recipe);
    return config::load(request, catalog_);
  }

  /// The base must be a job by itself, or become one with the values of a trial.
  config::Loaded load_base() const {
    config::Loaded base = load(definition_.base);
    if (!base.report.problems.empty() && !trial_repairs(base)) {
      throw Error(Code::config, config::to_text(base.report));
    }
    return base;
  }

  /// A few draws, looking for one without problems; functions of the script see the faulty base's values meanwhile.
  bool trial_repairs(const config::Loaded& base) const {
    constexpr std::int64_t kDraws = 20;
    definition_.base_tree = lua::job_tree(base.config);
    const std::unique_ptr<sweep::Proposer> source = sweep::make_proposer(definition_);
    for (std::int64_t number = 0; number < kDraws && definition_.method != sweep::Method::function; ++number) {
      const std::optional<sweep::Draw> draw = source->next({}, number);
      if (!draw) {
        return false;
      }
      sweep::Trial trial;
      trial.attributes["values"] = Node(draw->values);
      if (load(trial_recipe(definition_, trial)).report.problems.empty()) {
        return true;
      }
    }
    return false;
  }

  void check_base(const config::Config& config) const {
    KF_CHECK(config.checkpoint.dir == config::CheckpointConfig().dir, Code::config,
             "checkpoint.dir ({}) would be shared by all trials; leave it out, each has a folder of its own", config.checkpoint.dir);
    KF_CHECK(!definition_.objective.starts_with("eval.") || config.eval.enabled, Code::config,
             "the objective is {}, but eval.enabled is false; enable it in the base, or take another objective", definition_.objective);
    if (!definition_.isolate) {
      check_device_here(definition_, config);
    }
  }

  std::optional<std::int64_t> trial_limit(const sweep::Proposer& source) const {
    const std::optional<std::int64_t> count = source.count();
    if (count && definition_.trials) {
      return std::min(*count, *definition_.trials);
    }
    return count ? count : definition_.trials;
  }

  void name_folder(const config::Config& config) {
    name_ = config.run.name;
    dir_ = config.run.dir.empty() ? fs::path("runs") / name_ : fs::path(config.run.dir);
  }

  void open(const config::Config& config) {
    name_folder(config);
    const fs::path file = dir_ / "study.db";
    if (starts_over(config)) {
      move_aside();
    }
    // In this order: another worker may just be making the file.
    KF_CHECK(!path_exists(dir_) || fs::is_empty(dir_) || path_exists(file), Code::config,
             "{} holds something that is no sweep; give the base another run.name", dir_);
    fs::create_directories(dir_);
    remove_temporaries(dir_, {"trials.csv", "best.toml"});
    store_ = std::make_unique<sweep::Store>(file, sweep::Database::Mode::create);
    store_->open_study(name_, definition_.maximise);
    const Node before = store_->attribute("definition");
    const config::Table now = sweep::identity(definition_);
    if (before.table() != nullptr) {
      const std::string changed = sweep::difference(*before.table(), now);
      KF_CHECK(changed.empty(), Code::config,
               "the sweep '{}' in {} was another one ({}); give the base another run.name, or start over with --run.fresh=true", name_,
               dir_, changed);
    }
    store_->set_attribute("definition", Node(now));
    store_->set_attribute("command", command_node());
    if (const std::string watch = watch_token(); !watch.empty()) {
      store_->set_attribute("watch", Node(watch));
    }
  }

  /// run.fresh, but for a restart (--max-restarts) of the same start.
  bool starts_over(const config::Config& config) const {
    if (!config.run.fresh || !path_exists(dir_ / "study.db")) {
      return false;
    }
    const std::string watch = watch_token();
    const Node before = watch.empty() ? Node() : open_sweep(dir_)->attribute("watch");
    const auto* const text = std::get_if<std::string>(&before.value);
    return text == nullptr || *text != watch;
  }

  void move_aside() const {
    KF_CHECK(sweep::count_of(recovered_trials(), sweep::TrialState::running) == 0, Code::config,
             "run.fresh: another worker runs trials in {}", dir_);
    for (int number = 1;; ++number) {
      const fs::path aside = dir_.string() + "." + std::to_string(number);
      if (!path_exists(aside)) {
        fs::rename(dir_, aside);
        log::info("run.fresh: the earlier sweep was moved to {}", aside);
        return;
      }
    }
  }

  std::vector<sweep::Trial> recovered_trials() const {
    const std::unique_ptr<sweep::Store> store = open_sweep(dir_);
    store->recover();
    return store->trials();
  }

  /// How `kf-host sweep resume` calls again.
  Node command_node() const {
    config::Array words{Node(arguments_.file)};
    for (const std::string& word : arguments_.overrides) {
      if (!word.starts_with("--run.fresh")) {
        words.emplace_back(word);
      }
    }
    if (!arguments_.script.empty()) {
      words.emplace_back(std::string("--"));
      for (const std::string& word : arguments_.script) {
        words.emplace_back(word);
      }
    }
    config::Table out;
    out["arguments"] = Node(std::move(words));
    out["folder"] = Node(fs::current_path().string());
    return Node(std::move(out));
  }

  std::vector<std::string> trial_command(const sweep::Trial& trial) const {
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string(), arguments_.file};
    if (definition_.ranks > 1) {
      argv.insert(argv.begin() + 1, {"--nproc", std::to_string(definition_.ranks)});
    }
    for (const std::string& word : trial_overrides(arguments_.overrides)) {
      argv.push_back(word);
    }
    argv.push_back(format("--sweep-trial={}#{}", dir_, trial.number));
    if (!arguments_.script.empty()) {
      argv.emplace_back("--");
      argv.insert(argv.end(), arguments_.script.begin(), arguments_.script.end());
    }
    return argv;
  }

  /// Several trials share the cores and the GPUs.
  std::map<std::string, std::string> environment(std::int64_t place) const {
    std::map<std::string, std::string> out;
    if (std::getenv("OMP_NUM_THREADS") == nullptr) {
      out["OMP_NUM_THREADS"] =
          std::to_string(std::max<std::int64_t>(1, own_cores().threads() / (definition_.parallel * definition_.ranks)));
    }
    if (const std::string devices = sweep::devices_of_place(place, definition_.ranks, devices_); !devices.empty()) {
      out["CUDA_VISIBLE_DEVICES"] = devices;
    }
    return out;
  }

  bool work(sweep::Proposer& source, std::optional<std::int64_t> limit) {
    FirstOutput out;  // trials in this process have standard output while they run
    sweep::LiveView view(out, definition_.maximise, terminal_columns());
    view.update(store_->trials());
    sweep::RunnerOptions options;
    options.dir = dir_;
    options.parallel = definition_.parallel;
    options.limit = limit;
    options.environment = [this](std::int64_t place) { return environment(place); };
    options.command = [this](const sweep::Trial& trial) { return trial_command(trial); };
    options.changed = [&](const std::vector<sweep::Trial>& trials) {
      write_sweep_files(dir_, *store_, trials, [this](const sweep::Trial& best) { return best_toml(best); });
      view.update(trials);
    };
    if (terminal_columns() > 0) {
      options.ticked = [&](const std::vector<sweep::Trial>& trials) { view.update(trials); };
    }
    std::optional<GroupSync> group;
    if (!definition_.isolate) {
      options.here = [this](const sweep::Trial& trial) { return run_trial_here(run_script_, arguments_, dir_, trial); };
      share_cores_here();
      group.emplace();
    }
    const bool finished = sweep::Runner(*store_, source, std::move(options)).run();
    if (!out) {
      std::cout.setstate(std::ios::badbit);  // who ends the program says that not everything could be written
    }
    return finished;
  }

  /// The settings of the best trial as a job of its own.
  std::string best_toml(const sweep::Trial& best) const {
    config::Loaded loaded = load(trial_recipe(definition_, best));
    std::string note =
        format("# The best of the sweep '{}': trial {}, {} = {}.\n", name_, best.number, sweep::objective_name(*store_), *best.value);
    std::vector<std::string> scripted;
    for (const auto& [kind, parts] : catalog_) {
      for (const config::PartInfo& part : parts) {
        if (part.origin != "native" && config::to_toml(loaded.config).find('"' + part.name + '"') != std::string::npos) {
          scripted.push_back(kind + " " + part.name);
        }
        if (kind == "hook" && part.origin != "native") {
          std::erase(loaded.config.hooks, part.name);
        }
      }
    }
    if (!scripted.empty()) {
      note += format("# Parts of {}: {}. Its hooks are left out here; other parts of a script need the script.\n", arguments_.file,
                     join(scripted, ", "));
    }
    loaded.config.run.name = name_ + "-best";
    loaded.config.run.dir.clear();
    return note + config::to_toml(loaded.config);
  }

  void print_start(std::optional<std::int64_t> limit) const {
    const std::string ranks = definition_.ranks > 1 ? format(", each of {} processes", definition_.ranks) : "";
    std::cout << format("sweep   {}: {}, {} trials, {} at a time{}", name_, sweep::method_name(definition_.method),
                        limit ? std::to_string(*limit) : "as many as it gives", definition_.parallel,
                        definition_.isolate ? ranks : " in this process")
              << "  " << dir_.string() << std::endl;
  }

  void print_end(bool finished) {
    const std::vector<sweep::Trial> trials = store_->trials();
    write_sweep_files(dir_, *store_, trials, [this](const sweep::Trial& best) { return best_toml(best); });
    const std::string objective = sweep::objective_name(*store_);
    sweep::write_plots(dir_, trials, definition_.maximise, objective);
    if (!finished) {
      std::cout << "stopped: " << sweep::summary(trials) << "; `" << shell_line({invocation().front(), "sweep", "resume", dir_.string()})
                << "` goes on" << std::endl;
      note_stopped_by_signal();
      return;
    }
    std::cout << sweep::trials_table(trials, definition_.maximise, 10);
    for (const sweep::Chart& chart : sweep::charts(trials, definition_.maximise)) {
      std::cout << '\n' << sweep::text_plot(chart, objective);
    }
    const sweep::Trial* best = sweep::best_of(trials, definition_.maximise);
    std::cout << '\n' << sweep::summary(trials) << '\n';
    KF_CHECK(best != nullptr, Code::other, "no trial completed; see {}/trials/*/output.txt", dir_);
    std::cout << format("best: trial {}, {} {}; {}", best->number, objective, sweep::short_number(*best->value), dir_ / "best.toml")
              << std::endl;
  }

  const TrainArguments& arguments_;
  const config::Catalog catalog_;
  sweep::Definition& definition_;
  const RunScript run_script_;
  std::string name_;
  fs::path dir_;
  std::unique_ptr<sweep::Store> store_;
  const std::vector<std::string> devices_ = visible_gpus();
};

}  // namespace

namespace {

void refuse_ranks(const Launch& launch) {
  KF_CHECK(
      launch.world() == 1, Code::config,
      "a sweep's trials are processes of their own; start it once, without --nproc: `ranks = {}` in kf.sweep makes each trial one of {} "
      "processes",
      launch.world(), launch.world());
}

}  // namespace

void run_sweep(const TrainArguments& arguments, const Registries& registries, Script& script, const Launch& launch,
               const RunScript& run_script) {
  refuse_ranks(launch);
  SweepWorker(arguments, registries, *script.sweep(), run_script).run();
}

config::Node dry_run_sweep(const TrainArguments& arguments, const Registries& registries, sweep::Definition& definition,
                           const Launch& launch) {
  refuse_ranks(launch);
  return SweepWorker(arguments, registries, definition).dry_run();
}

}  // namespace kf
