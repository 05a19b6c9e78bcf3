#include <iostream>
#include <optional>

#include "app/command/commands.h"
#include "app/command/plan_report.h"
#include "app/line/option_list.h"
#include "app/script/script_parts.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/plan/budget.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/progress.h"
#include "model/transformer/build.h"
#include "train/loop/planned_weights.h"

namespace kf {
namespace {

constexpr double kMostRanks = 1 << 20;
constexpr std::size_t kShown = 10;

config::Request request_of(const OptionList& options, config::Catalog& catalog) {
  KF_CHECK(options.words.size() == 1, Code::config,
           "usage: kf-host plan JOB --world N [--gpu NAME|FILE] [--search] [--json] [--section.key=value ...]");
  const std::string& file = options.words[0];
  config::Request out;
  out.overrides = options.overrides;
  out.files_must_exist = false;
  if (file.ends_with(".lua")) {
    ScriptParts parts = read_script(file);
    KF_CHECK(parts.table.has_value(), Code::config, "{} returns no job and calls no kf.run", file);
    out.recipe = std::move(*parts.table);
    catalog = std::move(parts.catalog);
    return out;
  }
  std::error_code ignored;
  const bool folder = fs::is_directory(file, ignored);
  if (folder || !file.ends_with(".toml")) {  // a run, a folder of Hugging Face, a known model's name
    const fs::path job = fs::path(file) / "job.toml";
    if (folder && fs::is_regular_file(job, ignored)) {
      out.job = job;
    } else {
      out.overrides.insert(out.overrides.begin(), "--model.preset=" + file);
    }
    return out;
  }
  out.job = file;
  return out;
}

/// Throws Code::config with all problems of the job. Warnings are part of the plan.
config::Loaded load_whole(const config::Request& request, const config::Catalog& catalog) {
  config::Loaded loaded = config::load(request, catalog);
  if (!loaded.report.problems.empty()) {
    throw Error(Code::config, config::to_text(loaded.report));
  }
  return loaded;
}

/// --world, or the product of the degrees where the job says all of them.
std::int64_t world_of(const OptionList& options, const config::Config& config) {
  if (options.has("--world")) {
    return option_number<std::int64_t>("--world", options.last("--world"), 1, kMostRanks);
  }
  const PerAxis degrees = config::degrees_of(config.distributed);
  KF_CHECK(degrees.dp_shard > 0, Code::config,
           "how many ranks? Give --world N: distributed.dp_shard = -1 takes what the other degrees leave");
  return degrees.product();
}

plan::Weights weights_of(const config::Config& config, const Registries& registries) {
  try {
    return planned_weights(config, build_model(config, registries)->parameters());
  } catch (const Error& error) {
    throw Error(error.code(), format("{}: a plan knows native parts alone", error.what()));
  }
}

/// Says how far it is: thousands of ranks have thousands of layouts.
plan::Found search_layouts(const config::Loaded& loaded, const plan::Weights& weights, const plan::Gpu& gpu, std::int64_t world) {
  std::optional<Progress> progress;
  return plan::search(loaded, weights, gpu, world, kShown, [&](std::int64_t, std::int64_t all) {
    if (!progress) {
      progress.emplace("planning layouts", all, "", Progress::Of::things);
    }
    progress->add(1);
    progress->show();
  });
}

}  // namespace

int plan_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host plan", {"--world", "--gpu"}, {"--search", "--json"}, true});
  const Registries registries = native_registries();
  config::Catalog catalog = registries.catalog();
  config::Request request = request_of(options, catalog);
  const plan::Gpu gpu = plan::gpu_named(options.has("--gpu") ? options.last("--gpu") : "h100");
  const bool searches = options.has("--search");
  // The number of ranks may follow from the job. With --search its own layout need not fit them.
  config::Loaded loaded = load_whole(request, catalog);
  const std::int64_t world = world_of(options, loaded.config);
  if (!searches) {
    request.world = world;
    loaded = load_whole(request, catalog);
  }
  const plan::Weights weights = weights_of(loaded.config, registries);
  const auto show = [json = options.has("--json")](const auto& print_it, const auto& as_node) {
    if (json) {
      std::cout << config::to_json(as_node(), config::JsonStyle::plain, 2) << '\n';
    } else {
      print_it();
    }
  };
  if (!searches) {
    const PlanReport report = make_report(loaded, weights, gpu, world);
    show([&] { print(std::cout, report); }, [&] { return to_node(report); });
    return 0;
  }
  const plan::Found found = search_layouts(loaded, weights, gpu, world);
  show([&] { print(std::cout, found, gpu, plan::update_sequences(loaded.config, world)); }, [&] { return to_node(found); });
  KF_CHECK(!found.best.empty(), Code::config,
           "no layout of {} ranks fits into a {}{}: more ranks, train.activation_checkpointing = \"full\", "
           "or fewer sequences at a time",
           world, gpu.name, found.too_large > 0 ? format(" (the smallest needs {} a rank)", human_bytes(found.least_memory)) : "");
  return 0;
}

}  // namespace kf
