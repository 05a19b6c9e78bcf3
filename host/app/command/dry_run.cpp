#include "app/command/dry_run.h"

#include <iostream>

#include "app/command/data_job.h"
#include "config/rules/unbuilt.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "data/cache/cache.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "data/source/tokenized_text.h"
#include "metrics/peak.h"
#include "run/header.h"
#include "run/job_tokenizer.h"
#include "run/memory_check.h"
#include "run/mirror_place.h"
#include "run/phases.h"
#include "run/run_checks.h"
#include "run/run_context.h"
#include "run/run_parts.h"
#include "run/start.h"
#include "run/trainee.h"
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
std::string start_text(const RunContext& run, const std::optional<std::string>& data) {
  if (const fs::path mirror = mirror_folder(run.config, run.plan); !mirror.empty()) {
    check_mirror_owner(mirror, run.config, run.plan);
  }
  const Earlier earlier = earlier_checkpoint(run, CheckpointManager(checkpoint_options(run)));
  if (!earlier.checkpoint) {
    const bool fresh = run.config.run.fresh && path_exists(run.plan.dir);
    return fresh ? "would start over; the earlier run is moved aside" : "would start a new run";
  }
  if (!data) {
    return format("would look at {}", *earlier.checkpoint);
  }
  const Resume resume = resume_from(run, earlier, run.code, *data);
  const bool complete = resume.kind == Resume::Kind::complete || is_complete_unsaved(run, earlier, resume);
  return complete ? format("is complete already, in {}", resume.checkpoint) : format("would go on from {}", resume.checkpoint);
}

}  // namespace

void dry_run(const RunRequest& request, const Registries& registries) {
  const config::Config& config = request.loaded.config;
  const std::vector<std::string> refused = config::keys_refused(config);
  KF_CHECK(refused.empty(), Code::config, "{}", join(refused, "; "));
  RunContext run = open_run(request, registries);
  for (const std::string& line : config::keys_without_effect(request.loaded)) {
    log::warn("{}", line);
  }
  check_data(config);
  std::unique_ptr<Loader> data;
  std::optional<std::string> record;
  if (is_tokenized(config, registries)) {
    data = make_train_loader(config, {0, 1, &registries, false});
    end_with_data(config, *data, run.plan);
    record = data_record_of(*data, make_eval_sets(config, {0, 1, &registries}));
  }
  tokenizer_of(config, registries);
  const PlannedModel planned = plan_model(run);
  make_loss(config, registries);
  const std::unique_ptr<Schedule> schedule = make_schedule(config, registries, {run.plan.max_steps, run.plan.data_ranks});
  sampler_of(config, registries);
  check_plan(config, registries, *planned.model);
  const Phases phases = make_phases(config, registries, run.plan.max_steps);
  if (data != nullptr) {
    check_phases(phases, *planned.model, *data);
  }
  const std::string start = start_text(run, record);
  if (!run.world.leads()) {
    return;
  }
  print_header({request, config, run.plan, *planned.model, data != nullptr ? data->describe() : "not tokenized yet", *schedule, run.compute,
                peak_of(run.compute, config.train), memory_text(planned.memory, planned.room)});
  for (const std::string& note : run.plan.notes) {
    log::info("{}", note);
  }
  std::cout << "dry run: nothing is wrong with " << request.file.string() << "; it " << start << '\n' << std::flush;
}

}  // namespace kf
