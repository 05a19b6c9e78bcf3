#include "run/run_context.h"

#include "config/rules/unsaid.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/wall_time.h"

namespace kf {
namespace {

/// What this build cannot do although the settings allow it is said before anything starts.
void refuse_unbuilt(const config::Config& config, const config::Plan& plan) {
  KF_CHECK(config.train.mixed_precision != "fp8", Code::config,
           "train.mixed_precision = \"fp8\" needs a GPU of compute capability 8.9 or more{}; use \"bf16\"",
           plan.device == "cpu" ? ", and the device is cpu" : ", and is not built yet");
}

}  // namespace

RunContext open_run(const RunRequest& request, const Registries& registries) {
  const double began = WallTime::system_clock()();
  const config::Config& config = request.loaded.config;
  const ComputeDevice compute = open_device(config.run.device);  // before anything asks torch for CUDA: the answer is remembered
  RunContext run{request, registries, config, began, compute, config::make_plan(request.loaded, request.file, 1, compute.device.is_cuda())};
  refuse_unbuilt(config, run.plan);
  for (const std::string& line : config::unsaid(request.loaded)) {
    log::warn("{}", line);
  }
  return run;
}

}  // namespace kf
