#include <algorithm>
#include <iostream>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/sweep/sweep_folder.h"
#include "core/error.h"
#include "sweep/chart.h"
#include "sweep/files.h"
#include "sweep/objective.h"
#include "sweep/table.h"

namespace kf {
namespace {

void show(const fs::path& dir) {
  const std::unique_ptr<sweep::Store> store = open_sweep(dir);
  const std::vector<sweep::Trial> trials = store->trials();
  std::cout << store->name() << ": " << sweep::summary(trials) << "; value is " << sweep::objective_name(*store)
            << (store->maximise() ? ", more is better" : ", less is better") << '\n'
            << sweep::trials_table(trials, store->maximise());
}

void best(const fs::path& dir) {
  open_sweep(dir);
  std::error_code ignored;
  KF_CHECK(fs::exists(dir / "best.toml", ignored), Code::config, "no trial of {} has completed yet", dir);
  std::cout << read_file(dir / "best.toml");
}

void plot(const fs::path& dir) {
  const std::unique_ptr<sweep::Store> store = open_sweep(dir);
  const std::vector<sweep::Trial> trials = store->trials();
  const std::vector<sweep::Chart> all = sweep::charts(trials, store->maximise());
  KF_CHECK(!all.empty(), Code::config, "nothing to plot in {}: no trial with a value, or nothing varied", dir);
  for (const sweep::Chart& chart : all) {
    std::cout << sweep::text_plot(chart, sweep::objective_name(*store)) << '\n';
  }
  for (const fs::path& file : sweep::write_plots(dir, trials, store->maximise(), sweep::objective_name(*store))) {
    std::cout << file.string() << '\n';
  }
}

int resume(const fs::path& dir, bool failed) {
  Arguments arguments;
  fs::path folder;
  const fs::path here = fs::canonical(dir);
  std::string name;
  {
    const std::unique_ptr<sweep::Store> store = open_sweep(dir);
    const config::Node command = store->attribute("command");
    KF_CHECK(command.table() != nullptr, Code::config, "{} does not say which script made it", dir);
    for (const config::Node& word : *command.table()->find("arguments")->array()) {
      arguments.push_back(std::get<std::string>(word.value));
    }
    folder = std::get<std::string>(command.table()->find("folder")->value);
    name = store->name();
    if (failed) {
      std::cout << store->retry_failed() << " failed trials go back in line\n";
    }
  }
  std::error_code gone;
  fs::current_path(folder, gone);
  KF_CHECK(!gone, Code::config, "the sweep was started in {}, which is no longer there; start its script again: {}", folder, arguments[0]);
  std::error_code elsewhere;
  if (fs::weakly_canonical(fs::path("runs") / name, elsewhere) != here) {  // moved, or made under another run.dir
    arguments.insert(arguments.begin() + 1, "--run.dir=" + here.string());
  }
  return train_command(arguments);
}

}  // namespace

int sweep_command(const Arguments& args) {
  KF_CHECK(!args.empty(), Code::config, "{}", usage::kSweep);
  const std::vector<std::string> commands{"show", "best", "plot", "resume"};
  const std::string& command = args[0];
  KF_CHECK(!command.ends_with(".lua"), Code::config, "a sweep's script is started like any other: `kf-host {}`; sweep has: {}",
           join(args, " "), join(commands, ", "));
  const std::string near = nearest(command, commands);
  KF_CHECK(std::find(commands.begin(), commands.end(), command) != commands.end(), Code::config, "sweep has no command '{}'{}; have: {}",
           command, near.empty() ? "" : "; did you mean '" + near + "'?", join(commands, ", "));
  const bool failed = command == "resume" && args.size() == 3 && args[2] == "--failed";
  KF_CHECK(args.size() == (failed ? 3 : 2), Code::config, "usage: kf-host sweep {} DIR{}", command,
           command == "resume" ? " [--failed]" : "");
  if (command == "show") {
    show(args[1]);
  } else if (command == "best") {
    best(args[1]);
  } else if (command == "plot") {
    plot(args[1]);
  } else {
    return resume(args[1], failed);
  }
  return 0;
}

}  // namespace kf
