#pragma once
// What follows a command: files, overrides, and what is meant for a script.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// How many processes train together, and which of them this call starts.
struct LaunchOptions {
  std::optional<std::int64_t> processes = {};  // --nproc N: start so many of this program on this machine
  bool of_gpus = false;                        // --nproc gpu: as many as there are GPUs
  std::optional<std::int64_t> nodes = {};      // --nnodes M: on so many machines, each with a call like this one
  std::optional<std::int64_t> node = {};       // --node-rank K: which of them this is
  std::string rendezvous = {};                 // --rdzv HOST:PORT or file:PATH: where all meet
  bool leader_only = false;                    // --rank-output leader: what other ranks write stays off the terminal

  bool starts() const { return processes.has_value() || of_gpus; }
};

/// Workers that come and go, and which of them this call starts.
struct WorkerOptions {
  std::int64_t workers = 0;                 // --workers N; 0: there are none
  std::optional<std::int64_t> worker = {};  // --worker K: this one alone; else all of them
  std::string place = {};                   // --meet FOLDER or HOST:PORT: where they meet
};

struct TrainArguments {
  std::string file;                    // .toml or .lua
  std::vector<std::string> overrides;  // everything else before "--"; the settings layer refuses what is no override
  std::vector<std::string> script;     // after "--"
  std::string sweep_trial;             // "DIR#NUMBER": this process runs one trial of a sweep (what a sweep starts itself with)
  bool help = false;
  std::string scratch = {};  // folder for runs without a name and a folder of their own; empty: runs/NAME as usual
  bool dry_run = false;      // check everything, print plan and memory, train nothing
  LaunchOptions launch = {};
  WorkerOptions workers = {};
  std::int64_t restarts = 0;        // --max-restarts N: start it again so often when the machine ends it
  std::int64_t longest_pause = 60;  // --restart-pause S: seconds before a restart, at most
};

/// Takes "--" and what follows off `args` and returns what follows: the strings for a script (kf.args).
std::vector<std::string> take_script_arguments(std::vector<std::string>& args);

/// Throws Code::config for no file, two files, or script arguments without a script.
TrainArguments parse_train_arguments(const std::vector<std::string>& args);

/// The words without --workers and what belongs to it: those of each worker.
std::vector<std::string> without_workers(std::vector<std::string> args);
/// The words without --nproc and what belongs to it: those of each process.
std::vector<std::string> without_launch(std::vector<std::string> args);
/// Those without --max-restarts and its pause.
std::vector<std::string> without_restarts(std::vector<std::string> args);

}  // namespace kf
