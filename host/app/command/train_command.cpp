#include <iostream>

#include "app/command/commands.h"
#include "app/command/dry_run.h"
#include "app/command/folder_run.h"
#include "app/command/local_ranks.h"
#include "app/command/local_workers.h"
#include "app/command/restarts.h"
#include "app/help/usage.h"
#include "app/line/arguments.h"
#include "app/script/script_parts.h"
#include "app/script/script_runs.h"
#include "app/script/script_session.h"
#include "app/sweep/sweep_folder.h"
#include "app/sweep/sweep_run.h"
#include "app/sweep/sweep_trial.h"
#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "core/log.h"
#include "core/wrap.h"
#include "parallel/meeting_store.h"
#include "parallel/worker_place.h"
#include "registry/registries.h"
#include "run/invocation.h"
#include "run/run.h"
#include "run/run_record.h"

namespace kf {
namespace {

/// The parts that a script registers, with the fields that may be set for them.
void print_own_parts(const std::string& file) {
  const auto own = [](const std::string&, const config::PartInfo& part) { return part.origin != "native"; };
  std::cout << "\nParts of " << file << ", with their own fields (--KIND.NAME.FIELD=value):\n\n";
  print_parts(std::cout, read_script(file).catalog, own);
}

/// The run's script is an empty one.
RunResult train_toml(const TrainArguments& arguments, Registries& registries, const Launch& launch) {
  config::Request request = request_of(arguments, launch);
  request.job = arguments.file;
  const config::Loaded loaded = config::load_or_fail(request, registries.catalog());
  Script script(registries, {{}, {}, launch.rank(), launch.world()}, {});
  const Script::RunScope scope(script, loaded.config);
  RunRequest run{loaded, scope, arguments.file, arguments.overrides.size()};
  run.launch = launch;
  return run_job(run, registries);
}

/// The job is read, checked and described; a script runs as far as its first kf.run.
void try_job(const TrainArguments& arguments, const Launch& launch) {
  ScriptSession session(arguments.file.ends_with(".lua") ? arguments.file : "", arguments.script, {}, launch);
  config::Request request = request_of(arguments, launch);
  if (session.sweep() != nullptr) {
    request.recipe = dry_run_sweep(arguments, session.registries(), *session.sweep(), launch);
    request.overrides = trial_overrides(arguments.overrides);
    request.world = session.sweep()->ranks;
  } else if (session.has_script()) {
    KF_CHECK(session.job().has_value(), Code::config, "{} returns no job and calls no kf.run", arguments.file);
    request.recipe = *session.job();
  } else {
    request.job = arguments.file;
  }
  const config::Loaded loaded = config::load_or_fail(request, session.registries().catalog());
  if (const std::int64_t ranks = request.world.value_or(1); ranks > launch.job_world()) {
    log::info("a trial is one of {} processes: its plan and memory are not tried here; `kf-host --nproc {} JOB --dry-run` tries a job's",
              ranks, ranks);
    return;
  }
  RunRequest run{loaded, session.begin(loaded.config), arguments.file, arguments.overrides.size()};
  run.launch = launch;
  dry_run(run, session.registries());
}

/// The worker that these processes are, where workers come and go.
std::optional<WorkerPlace> take_place(const TrainArguments& arguments) {
  if (arguments.workers.worker && !worker_place(environment())) {
    for (const char* const variable : launch_variables()) {  // of an srun, say, that has started each worker: no ranks of one
      ::unsetenv(variable);
    }
    be_worker(arguments.workers);
  }
  std::optional<WorkerPlace> place = worker_place(environment());
  KF_CHECK(!place || !arguments.launch.nodes, Code::config,
           "--nnodes is of ranks that train together; the ranks of one of --workers are those of one machine");
  if (place && place->here) {
    follow_launcher();
  }
  return place;
}

/// This process, or those that it starts, trains as `arguments` say.
int train_here(const TrainArguments& arguments, const Arguments& args, Registries& registries) {
  const std::optional<WorkerPlace> worker = take_place(arguments);
  if (arguments.restarts > 0) {
    return run_with_restarts(arguments.restarts, arguments.longest_pause, without_restarts(args));
  }
  if (worker) {
    started_with(words_of(*worker));
  }
  const std::int64_t restarts = follow_watcher();
  if (restarts > 0) {
    started_with({"--max-restarts", std::to_string(restarts)});
  }
  if (arguments.launch.starts() || arguments.launch.nodes || arguments.launch.node) {
    LocalRanks ranks = local_ranks(arguments.launch, launched_nodes(environment()));
    ranks.restarts = restarts;
    return run_local_ranks(ranks, without_launch(args));
  }
  KF_CHECK(!arguments.launch.leader_only, Code::config,
           "--rank-output is of what --nproc N starts; srun --label and torchrun --tee have their own");
  const Launch launch = Launch::from_environment(arguments.launch.rendezvous);
  if (launch.world() > 1) {
    be_a_rank(launch);
  } else if (launch.worker()) {
    launch.hide_from_children();
  }
  if (is_run_folder(arguments.file)) {
    continue_run(arguments, launch);
  } else if (arguments.dry_run) {
    try_job(arguments, launch);
  } else if (arguments.file.ends_with(".lua")) {
    ScriptRuns(arguments, registries, launch).run_file();
  } else {
    train_toml(arguments, registries, launch);
  }
  return status_of_runs();
}

/// Nobody has started this process as a worker: it is worker 0's command itself, which keeps the store where all meet.
bool keeps_meeting(const WorkerOptions& workers) {
  return workers.worker == 0 && is_meeting_store(workers.place) && !worker_place(environment());
}

}  // namespace

int train_command(const Arguments& args) {
  const TrainArguments arguments = parse_train_arguments(args);
  if (!arguments.sweep_trial.empty()) {
    follow_sweep();
    ::unsetenv(kWatchVariable);  // its sweep says whether it begins anew
  }
  Registries registries = native_registries();
  if (arguments.help) {
    std::cout << folded(usage::kTrain) << config::sections_text();
    if (arguments.file.ends_with(".lua")) {
      print_own_parts(arguments.file);
    }
    return 0;
  }
  if (arguments.workers.workers > 0 && !arguments.workers.worker) {
    const Arguments own = without_workers(args);
    return run_local_workers(arguments.workers, arguments.launch.processes.value_or(1), arguments.launch.leader_only,
                             arguments.launch.starts() ? own : without_launch(own));
  }
  std::optional<MeetingKeeper> keeper;
  if (!arguments.dry_run && keeps_meeting(arguments.workers)) {
    keeper.emplace(arguments.workers.place, arguments.workers.workers);
  }
  const int status = train_here(arguments, args, registries);
  if (keeper && status != kStoppedStatus) {
    keeper->wait_for_workers();
  }
  return status;
}

}  // namespace kf
