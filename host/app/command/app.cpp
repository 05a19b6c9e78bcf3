#include "app/command/app.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "app/command/commands.h"
#include "app/command/data_job.h"
#include "app/config/config_command.h"
#include "app/help/help.h"
#include "app/line/arguments.h"
#include "app/script/script_parts.h"
#include "app/script/script_session.h"
#include "bindings/api/meta.h"
#include "builtins/builtins.h"
#include "config/load/model_presets.h"
#include "core/error.h"
#include "core/log.h"
#include "data/hub/model.h"
#include "kernels/simd/isa.h"
#include "registry/registries.h"
#include "run/memory_check.h"
#include "run/run_record.h"
#include "run/run_threads.h"

namespace kf {
namespace {

using Command = int (*)(const Arguments&);

/// What a script returns, for `kf-host config check recipe.lua`; it must not train meanwhile.
Recipe read_recipe(const fs::path& path, const Arguments& arguments) {
  ScriptParts parts = read_script(path, arguments);
  KF_CHECK(parts.table.has_value(), Code::config, "{} returns no job and calls no kf.run", path);
  return {std::move(*parts.table), std::move(parts.catalog)};
}

fs::path config_of_hub(const HubName& name) { return hub::fetch_model(name, hub::ModelFiles::config); }
/// A run's folder stands for its job.toml; the parts of its script are added to `catalog`, for jobs of its checkpoints, too.
void read_run_folders(Arguments& words, config::Catalog& catalog) {
  for (std::string& word : words) {
    std::error_code ignored;
    const bool may_be = fs::is_directory(word, ignored) || fs::path(word).filename() == "job.toml";
    const std::optional<fs::path> run = may_be ? run_folder_of(word) : std::nullopt;
    if (!run) {
      continue;
    }
    if (is_run_folder(word)) {
      word = (fs::path(word) / "job.toml").string();
    }
    const RecordedScript script = recorded_script(*run);
    const ScriptSession session(script.path, script.arguments, script.copies);
    for (auto& [kind, parts] : session.registries().catalog()) {
      for (config::PartInfo& part : parts) {
        const auto same = [&part](const config::PartInfo& other) { return other.name == part.name; };
        if (std::none_of(catalog[kind].begin(), catalog[kind].end(), same)) {
          catalog[kind].push_back(std::move(part));
        }
      }
    }
  }
}

int config_subcommand(const Arguments& args) {
  if (args.size() == 1 && args[0] == "meta") {
    std::cout << lua::meta_text();
    return 0;
  }
  if (args.size() == 1 && args[0] == "api") {
    std::cout << lua::api_markdown();
    return 0;
  }
  Arguments words = args;
  const Arguments for_script = take_script_arguments(words);
  const Registries registries = native_registries();
  config::Catalog catalog = registries.catalog();
  read_run_folders(words, catalog);
  const JobReport memory = [&](const config::Loaded& loaded, std::int64_t world) { return memory_report(loaded, registries, world); };
  return config_command(words, catalog, std::cout,
                        {[&](const fs::path& path) { return read_recipe(path, for_script); }, check_data, memory});
}

struct Entry {
  const char* name;
  Command run;
};
constexpr Entry kCommands[] = {
    {"train", train_command},
    {"generate", generate_command},
    {"eval", eval_command},
    {"config", config_subcommand},
    {"data", data_command},
    {"plan", plan_command},
    {"registry", registry_command},
    {"test", test_command},
    {"lua", lua_command},
    {"sweep", sweep_command},
    {"export", export_command},
    {"adapter", adapter_command},
    {"checkpoint", checkpoint_command},
    {"replay", replay_command},
    {"tokenizer", tokenizer_command},
    {"attach", attach_command},
    {"reload", reload_command},
    {"runs", runs_command},
    {"plot", plot_command},
    {"compare", compare_command},
    {"tail", tail_command},
    {"reproduce", reproduce_command},
    {"bundle", bundle_command},
    {"report", report_command},
    {"serve", serve_command},
    {"profile", profile_command},
    {"new", new_command},
    {"completion", completion_command},
    {"--version", version_command},
};

bool is_file(const std::string& word) { return word.ends_with(".toml") || word.ends_with(".lua") || is_run_folder(word); }

[[noreturn]] void unknown(const std::string& word) {
  std::vector<std::string> names{"doctor"};  // the launcher's own
  for (const Entry& entry : kCommands) {
    names.emplace_back(entry.name);
  }
  const std::string near = nearest(word, names);
  fail(Code::config, "'{}' is neither a command nor a .toml or .lua file{}; `kf-host --help` lists the commands", word,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace

int run_program(const std::vector<std::string>& args) {
  if (args.empty()) {
    std::cerr << kHelp;
    return static_cast<int>(Code::config);
  }
  if (args.size() > 1 && args[0] == "help") {  // of what the launcher does not know: kf-host help script.lua
    return run_program({args[1], "--help"});
  }
  KF_CHECK(simd::processor_has_what_is_asked(), Code::config,
           "ATEN_CPU_CAPABILITY={}: this processor does not have these instructions; unset it, or set it to default",
           std::getenv("ATEN_CPU_CAPABILITY"));
  take_own_cores();
  config::set_hub_models(config_of_hub);
  const auto command = std::find_if(std::begin(kCommands), std::end(kCommands), [&](const Entry& entry) { return args[0] == entry.name; });
  if (command != std::end(kCommands)) {
    return command->run(Arguments(args.begin() + 1, args.end()));
  }
  // A file may come after overrides: kf-host --train.seed=1 job.toml
  if ((args[0].starts_with("-") || is_file(args[0])) && std::any_of(args.begin(), args.end(), is_file)) {
    return train_command(args);
  }
  unknown(args[0]);
}

}  // namespace kf
