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
  const std::int64_t ranks = request.launch.world();
  const ComputeDevice compute = device_of(config, ranks);  // before anything asks torch for CUDA: the answer is remembered
  const config::Plan plan = config::make_plan(request.loaded, request.file, ranks, compute.device.is_cuda());
  refuse_unbuilt(config, plan);
  const World world = world_of(request, plan.mesh);
  RunContext run{request,
                 registries,
                 config,
                 began,
                 compute,
                 world,
                 config.diloco.interval > 0 ? worker_world(world) : world,
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
