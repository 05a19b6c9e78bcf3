#include "run/requeue.h"

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/child.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/log.h"

namespace kf {
namespace {

constexpr std::chrono::seconds kLongest{30};
constexpr int kTickMs = 100;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// "4711", or "4700_3" of the third task of an array.
std::string slurm_job() {
  const std::string array = variable("SLURM_ARRAY_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  return !array.empty() && !task.empty() ? array + "_" + task : variable("SLURM_JOB_ID");
}

/// Where a program lies by PATH; empty where it is not found.
fs::path found(const char* program) {
  const std::string path = variable("PATH");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    fs::path file = fs::path(path.substr(begin, end - begin)) / program;
    std::error_code none;
    if (fs::is_regular_file(file, none)) {
      return file;
    }
    begin = end + 1;
  }
  return {};
}

/// What went wrong; "" for nothing.
std::string ask_slurm(const fs::path& scontrol, const std::string& job) {
  Child child({scontrol.string(), "requeue", job}, {}, {});
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (std::chrono::steady_clock::now() < end) {
    if (const std::optional<Child::Ending> ending = child.poll()) {
      return ending->signal == 0 && ending->status == 0 ? "" : "it ended with " + ending->describe();
    }
    pollfd news{child.descriptor(), POLLIN, 0};
    ::poll(&news, child.descriptor() >= 0 ? 1 : 0, kTickMs);
  }
  return format("it did not end within {} s", kLongest.count());
}

}  // namespace

void requeue() noexcept try {
  const std::string job = slurm_job();
  if (job.empty()) {
    log::warn("run.requeue has no effect: this is no job of Slurm (SLURM_JOB_ID is not set)");
    return;
  }
  const fs::path scontrol = found("scontrol");
  const std::string fault = scontrol.empty() ? "there is no scontrol in PATH" : ask_slurm(scontrol, job);
  if (fault.empty()) {
    log::info("run.requeue: Slurm starts job {} again", job);
  } else {
    log::warn("run.requeue: job {} was not put back into the queue: {}", job, fault);
  }
} catch (const std::exception& e) {
  log::warn("run.requeue: {}", e.what());
}

}  // namespace kf
