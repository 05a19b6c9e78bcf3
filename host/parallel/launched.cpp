#include "parallel/launched.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.h"
#include "parallel/node_list.h"

namespace kf {
namespace {

/// The variables of a launcher. It is the one where `count` is set and, if there is one, `beside`.
struct Launcher {
  const char* by;
  const char* count;
  const char* rank;
  const char* local_rank;
  const char* local_count;
  const char* beside = "";
};
// torchrun first: its processes may have been started by any of the others. srun last: it may have started the agents of any of the others,
// and what is near to a process knows more of it. SLURM_NTASKS stands in the batch script itself, too, and SLURM_STEP_ID in what srun
// starts alone.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"MPICH", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MPT", "MPI_WORLD_SIZE", "MPI_WORLD_RANK", "", ""},
    {"flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "", "FLUX_TASK_RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "", "SLURM_STEP_ID"},
};

// Below the ports that systems lend to outgoing connections.
constexpr std::uint64_t kFirstPort = 16384, kPorts = 16384;

std::string port_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a: the same in every process
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return std::to_string(kFirstPort + (hash ^ (hash >> 32)) % kPorts);
}

std::int64_t number_of(const Variables& variable, const char* name, std::int64_t least, const char* whose) {
  const std::string text = variable(name);
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  KF_CHECK(error == std::errc() && end == text.data() + text.size() && value >= least, Code::communication,
           "{}='{}' is not a number of {} or more; {} sets this variable", name, text, least, whose);
  return value;
}

std::int64_t number_or(const Variables& variable, const char* name, std::int64_t least, std::int64_t otherwise, const char* whose) {
  return *name == '\0' || variable(name).empty() ? otherwise : number_of(variable, name, least, whose);
}

/// The step that srun made: where its tasks are and where they meet.
void ask_slurm(const Variables& variable, LaunchedRank& out) {
  std::string list = variable("SLURM_STEP_NODELIST");
  list = list.empty() ? variable("SLURM_JOB_NODELIST") : list;
  const std::vector<std::string> nodes = list.empty() ? std::vector<std::string>() : expand_nodes(list);
  const std::string tasks = variable("SLURM_STEP_TASKS_PER_NODE"), order = variable("SLURM_DISTRIBUTION");
  std::vector<std::int64_t> counts = tasks.empty() ? std::vector<std::int64_t>() : expand_counts(tasks);
  const std::int64_t node = number_or(variable, "SLURM_NODEID", 0, 0, "srun");
  if (node < static_cast<std::int64_t>(counts.size())) {
    out.local_world = counts[static_cast<std::size_t>(node)];
  }
  if (order.empty() || order.starts_with("block")) {
    out.hosts = hosts_of_tasks(nodes, counts);
  }
  if (out.where.empty() && !nodes.empty()) {
    const std::string job = variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID") + "." + variable("SLURM_RESTART_COUNT");
    out.where = (nodes.size() == 1 ? "127.0.0.1" : nodes.front()) + ":" + port_of("slurm " + job);
  }
  out.cores = number_or(variable, "SLURM_CPUS_PER_TASK", 1, 0, "srun");
}

/// Open MPI tells the name of its job, and nothing of the machine of rank 0.
void ask_open_mpi(const Variables& variable, LaunchedRank& out) {
  const std::string name = variable("PMIX_NAMESPACE").empty() ? variable("OMPI_MCA_ess_base_jobid") : variable("PMIX_NAMESPACE");
  if (out.where.empty() && !name.empty() && out.local_world == out.world) {
    out.where = "127.0.0.1:" + port_of("mpi " + name);
  }
}

void ask_torchrun(const Variables& variable, LaunchedRank& out) {
  out.kept = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  out.prefix = out.kept ? "kf-host/" + variable("TORCHELASTIC_RESTART_COUNT") : "";
}

LaunchedRank said_by(const Launcher& launcher, const Variables& variable) {
  KF_CHECK(!variable(launcher.rank).empty(), Code::communication,
           "{}={} says that {} processes were started together, and {} does not say which one this is; unset {} if they do not belong "
           "together",
           launcher.count, variable(launcher.count), variable(launcher.count), launcher.rank, launcher.count);
  LaunchedRank out{launcher.by, number_of(variable, launcher.rank, 0, launcher.by), number_of(variable, launcher.count, 1, launcher.by)};
  out.told = format("{}={} of {}={}", launcher.rank, out.rank, launcher.count, out.world);
  out.local_rank = number_or(variable, launcher.local_rank, 0, out.rank, launcher.by);
  out.local_world = number_or(variable, launcher.local_count, 1, out.world, launcher.by);
  KF_CHECK(out.rank < out.world, Code::communication, "{}={}, and {}={}: ranks count from 0", launcher.rank, out.rank, launcher.count,
           out.world);
  if (const std::string host = variable("MASTER_ADDR"), port = variable("MASTER_PORT"); !host.empty() && !port.empty()) {
    out.where = host + ":" + port;
  }
  const std::string by = launcher.by;
  if (by == "torchrun") {
    ask_torchrun(variable, out);
    return out;
  }
  if (!variable("SLURM_STEP_ID").empty() && variable("SLURM_STEP_NUM_TASKS") == variable(launcher.count)) {
    ask_slurm(variable, out);
  }
  if (by == "Open MPI") {
    ask_open_mpi(variable, out);
  }
  return out;
}

LaunchedRank started_by_us(const Variables& variable) {
  const char* const us = "kf-host --nproc";
  LaunchedRank out{us, number_of(variable, kRankVariable, 0, us), number_of(variable, kWorldVariable, 1, us)};
  out.told = format("{}={} of {}={}", kRankVariable, out.rank, kWorldVariable, out.world);
  out.local_rank = number_or(variable, kLocalRankVariable, 0, out.rank, us);
  out.local_world = number_or(variable, kLocalWorldVariable, 1, out.world, us);
  out.where = variable(kRendezvousVariable);
  KF_CHECK(out.rank < out.world && (out.world == 1 || !out.where.empty()), Code::communication,
           "{} {} of {} {} with the rendezvous '{}': these variables are `kf-host --nproc N`'s own", kRankVariable, out.rank,
           kWorldVariable, out.world, out.where);
  return out;
}

}  // namespace

Variables environment() {
  return [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
}

LaunchedRank launched_nodes(const Variables& variable) {
  for (const Launcher& launcher : kLaunchers) {
    const bool there = !variable(launcher.count).empty() && (*launcher.beside == '\0' || !variable(launcher.beside).empty());
    if (there && number_of(variable, launcher.count, 1, launcher.by) > 1) {
      return said_by(launcher, variable);
    }
  }
  return {};
}

LaunchedRank launched(const Variables& variable) {
  return variable(kWorldVariable).empty() ? launched_nodes(variable) : started_by_us(variable);
}

std::vector<const char*> launch_variables() {
  std::vector<const char*> out{kRankVariable, kWorldVariable, kRendezvousVariable, kLocalRankVariable, kLocalWorldVariable};
  for (const Launcher& launcher : kLaunchers) {
    for (const char* const name : {launcher.count, launcher.rank, launcher.local_rank, launcher.local_count}) {
      if (*name != '\0') {
        out.push_back(name);
      }
    }
  }
  return out;
}

}  // namespace kf
