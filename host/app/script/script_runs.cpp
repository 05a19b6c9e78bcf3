#include "app/script/script_runs.h"

#include <algorithm>
#include <utility>

#include "app/script/inference.h"
#include "app/sweep/sweep_run.h"
#include "app/sweep/sweep_trial.h"
#include "builtins/builtins.h"
#include "core/error.h"
#include "core/log.h"
#include "run/invocation.h"
#include "run/launch.h"
#include "run/run.h"
#include "run/run_parts.h"

namespace kf {

namespace {

/// Whether settings name other data than the checkpoint's own.
bool names_data(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const std::string& one) {
    return one.rfind("--eval.dataset_path=", 0) == 0 || one.rfind("--eval.datasets=", 0) == 0 ||
           one.rfind("--eval.hf_dataset_name=", 0) == 0;
  });
}

}  // namespace

ScriptModel load_script_model(const fs::path& path, const std::string& weights, const Registries& registries) {
  InferenceRequest wanted{path};
  wanted.weights = weight_kind_named(weights, "weights");
  const auto loaded = std::make_shared<const LoadedModel>(load_for_inference(wanted, registries));
  ScriptModel out{loaded->model, generate_options(loaded->config.generate), {}, {}, loaded->products};
  out.generate = [loaded, said = false](const std::vector<std::string>& prompts, const GenerateOptions& options) mutable {
    if (!loaded->generation.empty() && !std::exchange(said, true)) {
      log::info("{}", loaded->generation);
    }
    return generate_loaded(*loaded, prompts, options, at::kCPU);
  };
  out.evaluate = [loaded, path, &registries](const std::vector<std::string>& overrides) {
    InferenceRequest request{path};
    request.with_data = !names_data(overrides);
    request.overrides = overrides;
    if (!request.with_data) {
      request.overrides.insert(request.overrides.begin(), "--eval.enabled=true");
    }
    return evaluate_loaded(*loaded, settings_for_inference(request, registries), at::kCPU, registries);
  };
  return out;
}

config::Request request_of(const TrainArguments& arguments, const Launch& launch) {
  config::Request request;
  request.overrides = arguments.overrides;
  request.world = launch.job_world();
  return request;
}

ScriptRuns::ScriptRuns(TrainArguments arguments, Registries& registries, Launch launch)
    : arguments_(std::move(arguments)),
      registries_(registries),
      launch_(std::move(launch)),
      script_(registries,
              {[this](config::Node recipe) { return run(std::move(recipe)); },
               [this](const fs::path& path, const std::string& weights) { return load_script_model(path, weights, registries_); },
               launch_.rank(), launch_.world()},
              arguments_.script) {}

void ScriptRuns::run_file() {
  std::optional<config::Node> recipe = script_.run_file(arguments_.file);
  if (!arguments_.sweep_trial.empty()) {
    run_trial(arguments_, registries_, script_, launch_);
  } else if (script_.sweep() != nullptr) {
    run_sweep(arguments_, registries_, script_, launch_, [this](const TrainArguments& trial) {
      Registries own = native_registries();
      ScriptRuns(trial, own, launch_).run_file();
    });
  } else if (recipe) {
    run(std::move(*recipe));
  } else if (!ran_) {
    log::warn("{} returned no job and did not call kf.run: nothing was trained", arguments_.file);
  }
}

RunResult ScriptRuns::run(config::Node recipe) {
  // A script that trains one job after the other would need a signal for each.
  if (status_of_runs() == kStoppedStatus) {
    throw Error(static_cast<Code>(kStoppedStatus),
                format("a signal has asked to stop, so no further run is started; `{}` goes on", command_again()));
  }
  ran_ = true;
  name_if_needed(recipe);
  config::Request request = request_of(arguments_, launch_);
  request.recipe = std::move(recipe);
  const config::Loaded loaded = config::load_or_fail(request, registries_.catalog());
  const Script::RunScope scope(script_, loaded.config);
  RunRequest run_request{loaded, scope, arguments_.file, arguments_.overrides.size()};
  if (!std::exchange(reread_, true)) {  // a script that is read again ends at its first run
    run_request.reread = [this](config::Node again, const config::Catalog& parts) {
      config::Request request_again = request_of(arguments_, launch_);
      request_again.recipe = std::move(again);
      return config::load_or_fail(request_again, parts);
    };
  }
  run_request.launch = launch_;
  run_request.call = ++calls_;
  return run_job(run_request, registries_);
}

/// The first run of a script is called after it, the next ones NAME-2, NAME-3, ... so that an interrupted program goes on where it was.
void ScriptRuns::name_if_needed(config::Node& recipe) {
  config::Node& section = (*recipe.table())["run"];
  if (section.is_null()) {
    section.value = config::Table();
  }
  if (config::Table* table = section.table(); table != nullptr && table->find("name") == nullptr) {
    ++unnamed_;
    const std::string stem = fs::path(arguments_.file).stem().string();
    const std::string name = unnamed_ == 1 ? stem : stem + "-" + std::to_string(unnamed_);
    (*table)["name"] = config::Node(name, recipe.origin);
    if (!arguments_.scratch.empty() && table->find("dir") == nullptr) {
      (*table)["dir"] = config::Node((fs::path(arguments_.scratch) / name).string(), recipe.origin);
    }
  }
}

}  // namespace kf
