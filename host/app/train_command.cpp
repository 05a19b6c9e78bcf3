#include <iostream>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/launch.h"
#include "app/run.h"
#include "bindings/script.h"
#include "config/emit.h"
#include "config/load.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {
namespace {

constexpr const char* kUsage =
    "usage: kf-host [train] FILE [--section.key=value ...] [-- ARGS]\n\n"
    "Trains the job that FILE (.toml, or a .lua script) describes; the same call continues an unfinished run.\n"
    "Settings, by section (`kf-host config keys SECTION` lists one, `kf-host config explain KEY` explains a key):\n\n";

config::Request request_of(const TrainArguments& arguments) {
  config::Request request;
  request.overrides = arguments.overrides;
  request.world = launched_world();
  return request;
}

RunResult train_toml(const TrainArguments& arguments, const Registries& registries) {
  config::Request request = request_of(arguments);
  request.job = arguments.file;
  const config::Loaded loaded = config::load_or_fail(request, registries.catalog());
  return run_job({loaded, arguments.file, arguments.overrides.size()}, registries);
}

/// A script may return a job, or call kf.run itself as often as it likes.
class ScriptRuns {
 public:
  ScriptRuns(const TrainArguments& arguments, Registries& registries)
      : arguments_(arguments),
        registries_(registries),
        script_(registries, {[this](config::Node recipe) { return run(std::move(recipe)); }}, arguments.script) {}

  void run_file() {
    if (std::optional<config::Node> recipe = script_.run_file(arguments_.file)) {
      run(std::move(*recipe));
    }
  }

 private:
  RunResult run(config::Node recipe) {
    name_if_needed(recipe);
    config::Request request = request_of(arguments_);
    request.recipe = std::move(recipe);
    const config::Loaded loaded = config::load_or_fail(request, registries_.catalog());
    const Script::RunScope scope(script_, loaded.config);
    return run_job({loaded, arguments_.file, arguments_.overrides.size()}, registries_);
  }

  /// The first run of a script is called after it, the next ones NAME-2, NAME-3, ... so that an interrupted program goes on where it was.
  void name_if_needed(config::Node& recipe) {
    config::Node& section = (*recipe.table())["run"];
    if (section.is_null()) {
      section.value = config::Table();
    }
    if (config::Table* table = section.table(); table != nullptr && table->find("name") == nullptr) {
      ++unnamed_;
      const std::string stem = fs::path(arguments_.file).stem().string();
      (*table)["name"] = config::Node(unnamed_ == 1 ? stem : stem + "-" + std::to_string(unnamed_), recipe.origin);
    }
  }

  const TrainArguments& arguments_;
  Registries& registries_;
  int unnamed_ = 0;
  Script script_;
};

}  // namespace

int train_command(const Arguments& args) {
  const TrainArguments arguments = parse_train_arguments(args);
  Registries registries = native_registries();
  if (arguments.help) {
    std::cout << kUsage << config::sections_text();
    return 0;
  }
  if (arguments.file.ends_with(".lua")) {
    ScriptRuns(arguments, registries).run_file();
  } else {
    train_toml(arguments, registries);
  }
  return 0;
}

}  // namespace kf
