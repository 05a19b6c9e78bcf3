#include "app/command/dry_run.h"

#include <iostream>

#include "app/command/data_job.h"
#include "config/plan/plan.h"
#include "config/rules/unbuilt.h"
#include "config/rules/unsaid.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/cache/cache.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "data/source/tokenized_text.h"
#include "metrics/peak.h"
#include "model/transformer/build.h"
#include "run/header.h"
#include "run/job_tokenizer.h"
#include "run/memory_check.h"
#include "run/phases.h"
#include "run/resume.h"
#include "run/run_checks.h"
#include "run/run_parts.h"
#include "train/loop/steering.h"

namespace kf {
namespace {

/// Whether all text of the job is tokenized already; sources that are not are named.
bool is_tokenized(const config::Config& config, const Registries& registries) {
  bool all = true;
  for (const DataSource& source : data_sources(config, &registries, /*build=*/false)) {
    const SourceFiles files = find_files(source.spec, config);
    if (files.tokens) {
      continue;
    }
    try {
      open_tokenized_text(files, source.spec, source.options);
    } catch (const cache::NotTokenized&) {
      log::info("{}: its text is tokenized by the first run; `kf-host data build` does it beforehand", source.what());
      all = false;
    }
  }
  return all;
}

/// What the run would do with what lies in its folder. `data` is what a checkpoint would say of the data; none before they are tokenized.
std::string start_text(const config::Config& config, const config::Plan& plan, const RunRequest& request, const Registries& registries,
                       const std::optional<std::string>& data) {
  CheckpointOptions options;
  options.dir = plan.checkpoint_dir;
  std::optional<fs::path> newest = config.run.fresh ? std::nullopt : CheckpointManager(options).newest();
  if (!newest && config.checkpoint.load_path) {
    newest = CheckpointManager::find(*config.checkpoint.load_path);
  }
  if (!newest) {
    return config.run.fresh && path_exists(plan.dir) ? "would start over; the earlier run is moved aside" : "would start a new run";
  }
  if (!data) {
    return format("would look at {}", *newest);
  }
  const Resume resume =
      decide_resume({newest, config, request.code, code_makes_identity(config, registries.catalog()), plan.max_steps, *data});
  return resume.kind == Resume::Kind::complete ? format("is complete already, in {}", resume.checkpoint)
                                               : format("would go on from {}", resume.checkpoint);
}

}  // namespace

void dry_run(const RunRequest& request, const Registries& registries) {
  const config::Config& config = request.loaded.config;
  for (const std::string& line : config::unsaid(request.loaded)) {
    log::warn("{}", line);
  }
  const std::vector<std::string> refused = config::keys_refused(config);
  KF_CHECK(refused.empty(), Code::config, "{}", join(refused, "; "));
  for (const std::string& line : config::keys_without_effect(request.loaded)) {
    log::warn("{}", line);
  }
  const ComputeDevice compute = open_device(config.run.device);
  config::Plan plan = config::make_plan(request.loaded, request.file, 1, compute.device.is_cuda());
  check_data(config);
  std::unique_ptr<Loader> data;
  std::optional<std::string> record;
  if (is_tokenized(config, registries)) {
    data = make_train_loader(config, {0, 1, &registries, false});
    end_with_data(config, *data, plan);
    record = data_record_of(*data, make_eval_sets(config, {0, 1, &registries}));
  }
  tokenizer_of(config, registries);
  const std::shared_ptr<Model> model = build_model(config, registries);
  const MemoryEstimate memory = training_memory(config, model->parameters());
  const FreeMemory room = room_on(compute.device);
  check_memory(config.run, "the job", memory, room, memory.total() > room.bytes ? memory_savers(config, model->parameters()) : Savers{});
  make_loss(config, registries);
  const std::unique_ptr<Schedule> schedule = make_schedule(config, registries, plan.max_steps);
  sampler_of(config, registries);
  check_plan(config, registries, *model);
  const Phases phases = make_phases(config, registries, plan.max_steps);
  if (data != nullptr) {
    check_phases(phases, *model, *data);
  }
  const Peak peak = peak_of(compute, config.train);
  const std::string start = start_text(config, plan, request, registries, record);
  print_header({request, config, plan, *model, data != nullptr ? data->describe() : "not tokenized yet", *schedule, compute, peak,
                memory_text(memory, room)});
  for (const std::string& note : plan.notes) {
    log::info("{}", note);
  }
  std::cout << "dry run: nothing is wrong with " << request.file.string() << "; it " << start << '\n' << std::flush;
}

}  // namespace kf
