#pragma once
// `kf-host --nproc N ...`: N processes of this program on this machine that train together, alone or with those of other machines.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/line/arguments.h"
#include "parallel/launched.h"

namespace kf {

class Launch;

/// The ranks that this machine starts.
struct LocalRanks {
  std::int64_t count = 1;  ///< here: ranks node * count to (node + 1) * count - 1
  std::int64_t nodes = 1;
  std::int64_t node = 0;
  std::string where = {};               ///< as Rendezvous::where; empty: a file of this machine
  bool leader_only = false;             ///< what other ranks write stays off the terminal
  std::int64_t restarts = 0;            ///< N of --max-restarts N, for what the ranks say of how to start again
  std::vector<std::string> words = {};  ///< the options of the launch as they were given, likewise

  std::int64_t world() const { return count * nodes; }
};

/// Makes it of the options; `machines` is what srun or mpirun say of this process where they started one on each machine (launched_nodes).
/// Throws Code::config for options that do not belong together or leave open what must be known.
LocalRanks local_ranks(const LaunchOptions& options, const LaunchedRank& machines);

/// Starts the program `ranks.count` times with the words `args` and waits for all of them. Rank 0 writes where this process writes; what
/// others write appears on standard error, each line behind "[rank 1] ", or only that of the rank that failed. Signals that stop a run are
/// passed on. Where one rank fails, the others are told why and end by themselves; who is still there after some seconds is asked to, and
/// after a minute ended. Returns the exit status: that of
/// the rank that failed first, where others failed because of it (Code::communication) the status of the cause; of a rank that a signal
/// killed 128 + its number.
int run_local_ranks(const LocalRanks& ranks, const std::vector<std::string>& args);

/// For processes of which there are `count` on this machine: they share its physical cores, unless OMP_NUM_THREADS says how.
void share_cores(std::int64_t count, std::map<std::string, std::string>& environment);

/// Of a rank, once: the options by which its launcher was started. What this process starts does not see them.
std::vector<std::string> take_launch_words();

/// What is said of how to start this process again begins with the options that its parent took.
void started_with(const std::vector<std::string>& options);

/// What every rank does first. Rank 0 tells for all; what is said of how to start again starts them all.
void be_a_rank(const Launch& launch);

/// For a rank's own start: it ends when the process that started it is gone.
void follow_launcher();

}  // namespace kf
