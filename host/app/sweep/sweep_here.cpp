#include "app/sweep/sweep_here.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "app/line/failure.h"
#include "app/sweep/process_state.h"
#include "app/sweep/trial_output.h"
#include "core/error.h"
#include "core/visible_gpus.h"
#include "run/invocation.h"
#include "sweep/failure_line.h"
#include "sweep/runner.h"

namespace kf {

std::string run_trial_here(const RunScript& run_script, const TrainArguments& arguments, const fs::path& dir, const sweep::Trial& trial) {
  const fs::path output = sweep::Runner::trial_folder(dir, trial.number) / "output.txt";
  TrainArguments own = arguments;
  own.sweep_trial = format("{}#{}", dir, trial.number);
  const ProcessState before;
  std::string fault;
  {
    const TrialOutput redirected(output);
    ::unsetenv(kWatchVariable);  // the sweep says whether its trial begins anew
    try {
      run_script(own);
    } catch (const std::exception& error) {
      const Failure failure = failure_of(error);
      std::fprintf(stderr, "%s\n", failure.text.c_str());
      fault = format("status {}", failure.status);
    }
  }
  before.restore(format("trial {}", trial.number));
  return fault.empty() ? "" : format("{} ({})", sweep::failure_line(output), fault);
}

void check_device_here(const sweep::Definition& definition, const config::Config& config) {
  const std::string& device = config.run.device;
  KF_CHECK(
      device == "cpu" || (device == "auto" && visible_gpus().empty()), Code::config,
      "{}: kf.sweep: isolate = false, and run.device = \"{}\" takes the GPU: trials in the process of the sweep compute on the CPU; set "
      "run.device = \"cpu\" in the base, or leave isolate out",
      config::to_text(definition.isolate_place), device);
}

void share_cores_here() {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    at::set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  }
}

}  // namespace kf
