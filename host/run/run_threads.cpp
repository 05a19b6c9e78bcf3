#include "run/run_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/control_groups.h"
#include "core/cores.h"
#include "core/log.h"
#include "parallel/own_address.h"

namespace kf {
namespace {

struct Neighbours {
  std::size_t number = 0, of = 1;
};

/// Of this process among those of the machine that may use the same processors.
Neighbours neighbours_of(const RunContext& run, const std::vector<int>& processors) {
  const std::string mine = host_name() + " " + first_line("/proc/sys/kernel/random/boot_id") + " " + processor_list(processors);
  const std::vector<std::string> all = run.world.all().tell(mine);
  Neighbours out{0, static_cast<std::size_t>(std::count(all.begin(), all.end(), mine))};
  out.number = static_cast<std::size_t>(std::count(all.begin(), all.begin() + run.world.rank(), mine));
  if (const std::optional<WorkerPlace>& worker = run.request.launch.worker(); worker && worker->here) {
    out.number += static_cast<std::size_t>(worker->worker) * out.of;
    out.of *= static_cast<std::size_t>(worker->workers);
  }
  return out;
}

std::string counted(std::size_t count, const char* what) { return format("{} {}{}", count, what, count == 1 ? "" : "s"); }

}  // namespace

void take_own_cores() {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
    return;
  }
  const Cores cores = own_cores();
  if (cores.threads() != cores.logical()) {
    at::set_num_threads(cores.threads());
  }
}

std::string threads_text() {
  const Cores cores = own_cores();
  const auto threads = static_cast<std::size_t>(at::get_num_threads()), processors = static_cast<std::size_t>(cores.logical());
  if (threads == processors) {
    return counted(threads, "thread");
  }
  const std::string text = format("{} on {}", counted(threads, "thread"), counted(cores.physical.size(), "core"));
  return processors == cores.physical.size() ? text : format("{} ({})", text, counted(processors, "processor"));
}

std::unique_ptr<simd::PinnedThreads> pinned_threads(const RunContext& run) {
  if (!run.config.run.pin_threads) {
    return nullptr;
  }
  const std::vector<int> processors = allowed_processors();
  const Neighbours place = neighbours_of(run, processors);
  const std::vector<std::vector<int>> cores = share_of_cores(cores_of(processors).physical, place.number, place.of);
  std::vector<int> own;
  for (const std::vector<int>& core : cores) {
    own.insert(own.end(), core.begin(), core.end());
  }
  std::sort(own.begin(), own.end());
  if (cores_of(processors).physical.size() < place.of) {
    log::warn("run.pin_threads: {} processes share {}, so some wait for each other", place.of,
              counted(cores_of(processors).physical.size(), "core"));
  }
  log::info("threads are pinned: {} on processors {}", counted(static_cast<std::size_t>(at::get_num_threads()), "thread"),
            processor_list(own));
  return std::make_unique<simd::PinnedThreads>(cores, processors);
}

}  // namespace kf
