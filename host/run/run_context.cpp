#include "run/run_context.h"

#include <chrono>
#include <memory>

#include "bindings/script/show_world.h"
#include "config/rules/unbuilt.h"
#include "config/rules/unsaid.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/wall_time.h"
#include "parallel/worker_world.h"
#include "run/invocation.h"
#include "run/run_record.h"
#include "run/same_job.h"

namespace kf {
namespace {

/// What this build cannot do although the settings allow it is said before anything starts.
void refuse_unbuilt(const config::Config& config, const config::Plan& plan) {
  KF_CHECK(config.train.mixed_precision != "fp8", Code::config,
           "train.mixed_precision = \"fp8\" needs a GPU of compute capability 8.9 or more{}; use \"bf16\"",
           plan.device == "cpu" ? ", and the device is cpu" : ", and is not built yet");
  const std::vector<std::string> refused = config::keys_refused(config);
  KF_CHECK(refused.empty(), Code::config, "{}", join(refused, "; "));
}

/// Workers that come and go are replicas.
void check_workers(const config::Config& config, const config::Plan& plan, const WorkerPlace& place) {
  const std::int64_t replicas = plan.mesh.degree(Axis::dp_replicate);
  KF_CHECK(config.diloco.interval > 0, Code::config,
           "--workers {}: workers train apart, and diloco.interval says how many updates lie between their exchanges; set it, or leave "
           "--workers out and use --nproc",
           place.workers);
  KF_CHECK(replicas == place.workers, Code::config, "--workers {}, and distributed.dp_replicate is {}: it is the number of workers",
           place.workers, replicas);
}

/// A run of its own beside those of the other workers; the first one has the run's name.
void set_apart(config::Plan& plan, const WorkerPlace& place) {
  if (place.worker == 0) {
    return;
  }
  const std::string ending = format("-worker-{}", place.worker);
  const fs::path before = plan.dir;
  plan.name += ending;
  plan.dir += ending;
  for (fs::path* const path : {&plan.checkpoint_dir, &plan.tensorboard_dir, &plan.trace_dir}) {
    const fs::path inside = path->lexically_relative(before);
    const bool within = !inside.empty() && *inside.begin() != "..";
    *path = path->empty() ? *path : within ? plan.dir / inside : fs::path(path->string() + ending);
  }
}

/// The mesh of a worker's own ranks.
Mesh mesh_of_worker(const Mesh& all) {
  PerAxis degrees = all.degrees();
  degrees.dp_replicate = 1;
  return Mesh(degrees);
}

/// Which part of the data is read here: a worker that comes and goes has the place that it would have among all.
Share share_of(const World& world, const Mesh& all, const WorkerPlace* place) {
  if (place == nullptr) {
    return world.share();
  }
  PerAxis at = world.mesh().coordinates(world.rank());
  at.dp_replicate = place->worker;
  return {all.reader(all.rank_at(at)), all.readers()};
}

/// Several ranks compute on the CPU: there is no communication between GPUs yet.
ComputeDevice device_of(const config::Config& config, std::int64_t ranks) {
  const std::string& wanted = config.run.device;
  KF_CHECK(
      ranks == 1 || !wanted.starts_with("cuda"), Code::config,
      "run.device = \"{}\" with {} processes: several processes train on the CPU alone so far; use run.device = \"cpu\", or one process",
      wanted, ranks);
  return open_device(ranks == 1 ? wanted : "cpu");
}

bool starts_over(const config::Config& config, const config::Plan& plan) {
  return config.run.fresh && !began_under(plan.dir, watch_token());
}

World world_of(const RunRequest& request, const Mesh& mesh) {
  Launch launch = request.launch;
  const config::Config& config = request.loaded.config;
  const std::shared_ptr<Group> all = launch.all(std::chrono::seconds(config.distributed.nccl_timeout_sec));
  check_same_program(running_program(), request.scope.script().code(), *all);
  check_same_job(config, *all);  // before anything follows from the settings
  return {all, mesh};
}

}  // namespace

RunContext open_run(const RunRequest& request, const Registries& registries) {
  const double began = WallTime::system_clock()();
  const config::Config& config = request.loaded.config;
  const std::int64_t ranks = request.launch.job_world();
  const ComputeDevice compute = device_of(config, ranks);  // before anything asks torch for CUDA: the answer is remembered
  config::Plan plan = config::make_plan(request.loaded, request.file, ranks, compute.device.is_cuda());
  refuse_unbuilt(config, plan);
  const WorkerPlace* const place = request.launch.worker() ? &*request.launch.worker() : nullptr;
  if (place != nullptr) {
    check_workers(config, plan, *place);
    set_apart(plan, *place);
  } else if (config.diloco.interval > 0 && config.diloco.min_workers > 1) {
    log::warn("diloco.min_workers has no effect: without --workers N none of them may be missing");
  }
  const World world = world_of(request, place != nullptr ? mesh_of_worker(plan.mesh) : plan.mesh);
  RunContext run{request,
                 registries,
                 config,
                 began,
                 compute,
                 world,
                 config.diloco.interval > 0 && place == nullptr ? worker_world(world) : world,
                 share_of(world, plan.mesh, place),
                 plan,
                 starts_over(config, plan),
                 request.scope.script().code()};
  show_world(request.scope, run.world);
  for (const std::string& line : config::unsaid(request.loaded)) {
    log::warn("{}", line);
  }
  return run;
}

}  // namespace kf
