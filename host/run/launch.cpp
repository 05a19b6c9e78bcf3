#include "run/launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "parallel/c10d_group.h"

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

/// Throws where a launcher says that this process is one of several.
void refuse_other_launchers() {
  for (const Variable& variable : kVariables) {
    const std::int64_t world = read_count(variable).value_or(1);
    KF_CHECK(world == 1, Code::communication,
             "{} processes were started together ({} = {}), and launchers of this kind are not supported yet: `kf-host --nproc N` starts N "
             "processes on this machine. Start one; unset {} if they do not belong together",
             world, variable.name, world, variable.name);
  }
}

std::int64_t number_of(const char* variable, std::int64_t least) {
  const std::string_view text = text_of(variable) != nullptr ? text_of(variable) : "";
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  KF_CHECK(error == std::errc() && end == text.data() + text.size() && value >= least, Code::communication,
           "{}='{}' is not a number of {} or more; these variables are `kf-host --nproc N`'s own", variable, text, least);
  return value;
}

}  // namespace

Launch Launch::from_environment() {
  Launch out;
  if (text_of(kWorldVariable) == nullptr) {
    refuse_other_launchers();
    return out;
  }
  out.world_ = number_of(kWorldVariable, 1);
  out.rank_ = number_of(kRankVariable, 0);
  out.rendezvous_ = text_of(kRendezvousVariable) != nullptr ? text_of(kRendezvousVariable) : "";
  KF_CHECK(out.rank_ < out.world_ && (out.world_ == 1 || !out.rendezvous_.empty()), Code::communication,
           "{} {} of {} {} with the rendezvous '{}': these variables are `kf-host --nproc N`'s own", kRankVariable, out.rank_,
           kWorldVariable, out.world_, out.rendezvous_);
  return out;
}

void Launch::hide_from_children() {
  for (const char* variable : {kRankVariable, kWorldVariable, kRendezvousVariable}) {
    ::unsetenv(variable);
  }
}

std::shared_ptr<Group> Launch::all(std::chrono::milliseconds timeout) {
  if (!joined_->all) {
    joined_->all = join_processes({rendezvous_, rank_, world_, timeout});
  }
  return joined_->all;
}

}  // namespace kf
