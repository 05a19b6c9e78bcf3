#pragma once
// Which of several processes this one is, by the variables that those leave who start programs: kf-host itself, torchrun, mpirun, srun.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kf {

/// Variables by which `kf-host --nproc N` tells its processes who they are; the two of the machine may be absent.
inline constexpr const char* kRankVariable = "KF_RANK";
inline constexpr const char* kWorldVariable = "KF_WORLD";
inline constexpr const char* kRendezvousVariable = "KF_RENDEZVOUS";
inline constexpr const char* kLocalRankVariable = "KF_LOCAL_RANK";
inline constexpr const char* kLocalWorldVariable = "KF_LOCAL_WORLD";

/// What the one that started this process says of it.
struct LaunchedRank {
  std::string by;  ///< "kf-host --nproc", "torchrun", "Open MPI", "srun", ...; empty: one process alone
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;   ///< among the processes of this machine
  std::int64_t local_world = 1;  ///< how many these are
  /// As Rendezvous::where; empty where nothing tells it.
  std::string where = {};
  /// The store is there already, and kept by who started us (torchrun's agent); our keys begin with `prefix`.
  bool kept = false;
  std::string prefix = {};
  /// By rank, where known: the names of the machines.
  std::vector<std::string> hosts = {};
  std::int64_t cores = 0;  ///< that this process was given; 0: not said
  /// What the launcher told, for messages: "SLURM_PROCID=1 of SLURM_STEP_NUM_TASKS=2"; empty for one process alone.
  std::string told = {};
};

/// "" for a variable that is not set.
using Variables = std::function<std::string(const char* name)>;
Variables environment();

/// The first of these whose variables say that there are several: kf-host, torchrun (WORLD_SIZE, RANK), Open MPI, MVAPICH, jsrun, MPICH and
/// what follows it (PMI_SIZE), MPT, flux, srun. Throws Code::communication for a count without a rank, and for numbers that are none.
///
/// Where they meet: MASTER_ADDR:MASTER_PORT where both are set; under srun the first machine of the step, at a port that follows from the
/// job and the step; of processes that Open MPI started on one machine this one, at a port that follows from its name of the job.
LaunchedRank launched(const Variables& variable);

/// How many machines and of which number this one is, for `kf-host --nproc N --nnodes M` started once a machine (by srun, say): world and
/// rank of what started this process. One where nothing did.
LaunchedRank launched_nodes(const Variables& variable);

/// The variables by which any of them tells a process that it is one of several: what a rank starts must not take itself for it.
std::vector<const char*> launch_variables();

}  // namespace kf
