// Who started this process.

#include <cstdlib>
#include <string>

#include "app/doctor/looks.h"
#include "core/text.h"

namespace kf {
namespace {

struct Starter {
  const char* name;
  const char* world;  // the variable that says how many there are
  std::vector<const char*> shown;
};

const std::vector<Starter>& starters() {
  static const std::vector<Starter> all{
      {"kf-host --nproc", "KF_WORLD", {"KF_RANK"}},
      {"torchrun", "WORLD_SIZE", {"RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}},
      {"Open MPI", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_RANK"}},
      {"MPICH", "PMI_SIZE", {"PMI_RANK"}},
      {"srun", "SLURM_STEP_NUM_TASKS", {"SLURM_PROCID", "SLURM_STEP_NODELIST"}},
  };
  return all;
}

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

}  // namespace

Finding look_at_launcher() {
  std::vector<std::string> seen;
  for (const Starter& starter : starters()) {
    if (const std::string world = value_of(starter.world); !world.empty()) {
      std::string words = format("{}: {}={}", starter.name, starter.world, world);
      for (const char* const variable : starter.shown) {
        const std::string value = value_of(variable);
        words += value.empty() ? "" : format(" {}={}", variable, value);
      }
      seen.push_back(words);
    }
  }
  if (const std::string job = value_of("SLURM_JOB_ID"); !job.empty()) {
    seen.push_back(format("in job {} of Slurm on {} ({})", job, value_of("SLURM_JOB_NUM_NODES"), value_of("SLURM_JOB_NODELIST")));
  }
  return {"started by", Finding::State::fine, seen.empty() ? "hand: one process" : join(seen, "; ")};
}

}  // namespace kf
