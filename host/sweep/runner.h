#pragma once
// One worker of a sweep: trials until there are no more, as child processes, some at a time, or one after another in its own process.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/child.h"
#include "core/fs.h"
#include "sweep/proposer.h"
#include "sweep/store.h"

namespace kf::sweep {

struct RunnerOptions {
  fs::path dir;                       // of the sweep
  std::int64_t parallel = 1;          // children at a time
  std::optional<std::int64_t> limit;  // trials at all
  /// Of the trial at a place, 0 to parallel - 1: no two that run at a time have the same.
  std::function<std::map<std::string, std::string>(std::int64_t place)> environment;
  std::function<std::vector<std::string>(const Trial&)> command;  // argv of the child that runs a trial and finishes it in the store
  /// Instead of a child: runs a trial in this process and finishes it in the store; "" or why it failed. What it throws ends the sweep.
  std::function<std::string(const Trial&)> here;
  std::function<void(const std::vector<Trial>&)>
      changed;  // a trial has started or ended; of trials here, some may have since the last call
  /// About once a second meanwhile; of trials here by another thread, which this one waits for.
  std::function<void(const std::vector<Trial>&)> ticked;
};

class Runner {
 public:
  Runner(Store& store, Proposer& proposer, RunnerOptions options);

  /// True when there is nothing left to do; false when SIGINT or SIGTERM ended it: children then save and their trials go back in line.
  /// A child that ends without having finished its trial is a failed trial; where a signal killed it, the next start runs it again. What
  /// kills this process while a trial runs in it leaves that trial to the next worker (Store::recover).
  bool run();

  static fs::path trial_folder(const fs::path& sweep, std::int64_t number);

 private:
  struct Running {
    Trial trial;
    std::unique_ptr<Child> child;
    std::int64_t place = 0;
  };

  bool run_children();
  bool run_here();
  void train_here(const Trial& trial);
  std::optional<Trial> claim();
  bool start_one();
  std::int64_t free_place() const;
  void collect();
  void end(Running& running, const Child::Ending& ending);
  void wait();
  void beat();
  void stop_children();
  bool others_run();

  Store& store_;
  Proposer& proposer_;
  RunnerOptions options_;
  Worker self_ = Worker::self();
  std::vector<Running> running_;
  bool stopping_ = false;
  double last_beat_ = 0;
  double tell_from_ = 0;  // when `changed` is worth its time again
};

}  // namespace kf::sweep
