#include "run/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "config/rules/unbuilt.h"
#include "core/error.h"

namespace kf {
namespace {

/// A variable in which a launcher tells how many processes it started, and another that must be there for it to mean that.
struct Variable {
  const char* name;
  const char* beside = nullptr;
};
constexpr Variable kVariables[] = {
    {"WORLD_SIZE"},            // torchrun, and whoever follows it
    {"OMPI_COMM_WORLD_SIZE"},  // Open MPI
    {"PMI_SIZE"},              // MPICH, Intel MPI, Hydra
    {"MV2_COMM_WORLD_SIZE"},   // MVAPICH
    {"MPI_WORLD_SIZE"},        // MPT
    {"JSM_NAMESPACE_SIZE"},    // LSF's jsrun
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    // SLURM_NTASKS alone also stands in the batch script itself; SLURM_STEP_ID tells that srun started us.
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    {"SLURM_NTASKS", "SLURM_STEP_ID"},
};

const char* text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

std::optional<std::int64_t> read_count(const Variable& variable) {
  const char* const text = text_of(variable.name);
  if (text == nullptr || (variable.beside != nullptr && text_of(variable.beside) == nullptr)) {
    return std::nullopt;
  }
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  KF_CHECK(error == std::errc() && end == view.data() + view.size() && value >= 1, Code::communication, "{}='{}' is not a number of ranks",
           variable.name, view);
  return value;
}

}  // namespace

std::int64_t launched_world() {
  for (const Variable& variable : kVariables) {
    const std::int64_t world = read_count(variable).value_or(1);
    KF_CHECK(world == 1, Code::communication,
             "{} processes were started together ({} = {}), but {}. Start one; unset {} if they do not belong together", world,
             variable.name, world, config::one_process_only(), variable.name);
  }
  return 1;
}

}  // namespace kf
