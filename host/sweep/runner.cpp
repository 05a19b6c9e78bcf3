#include "sweep/runner.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>

#include "core/error.h"
#include "core/log.h"
#include "core/stop.h"
#include "sweep/failure_line.h"
#include "sweep/trial_pulse.h"

namespace kf::sweep {
namespace {

constexpr double kBeatSeconds = 10;
constexpr int kTickMs = 500;

double monotonic_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Runner::Runner(Store& store, Proposer& proposer, RunnerOptions options)
    : store_(store), proposer_(proposer), options_(std::move(options)) {}

fs::path Runner::trial_folder(const fs::path& sweep, std::int64_t number) {
  std::string name = std::to_string(number);
  name.insert(0, name.size() < 4 ? 4 - name.size() : 0, '0');
  return sweep / "trials" / name;
}

bool Runner::run() {
  const StopSignals signals;
  store_.retry_killed();
  return options_.here ? run_here() : run_children();
}

std::optional<Trial> Runner::claim() {
  std::optional<Trial> trial = store_.claim(
      options_.limit, self_, [this](const std::vector<Trial>& trials, std::int64_t number) { return proposer_.next(trials, number); });
  if (trial) {
    fs::create_directories(trial_folder(options_.dir, trial->number));
  }
  return trial;
}

/// In this process. A trial that a signal has stopped is saved, and goes back in line.
bool Runner::run_here() {
  store_.relax();
  while (!StopSignals::requested()) {
    store_.recover();
    if (const std::optional<Trial> trial = claim()) {
      train_here(*trial);
    } else if (others_run()) {
      ::poll(nullptr, 0, kTickMs);
    } else {
      return true;
    }
  }
  return false;
}

void Runner::train_here(const Trial& trial) {
  std::string fault;
  {
    const TrialPulse pulse(options_.dir, trial.id, options_.ticked);
    fault = options_.here(trial);
  }
  if (fault.empty() && StopSignals::requested()) {
    store_.put_back(trial.id);  // nothing happens to one that has finished meanwhile
  } else {
    store_.finish(trial.id, TrialState::fail, std::nullopt, fault.empty() ? "the trial ended without a result" : fault);
  }
  store_.settle(trial.id);
  // Of thousands of trials a table takes longer than a small one of them.
  constexpr double kShare = 20;
  const double begin = monotonic_seconds();
  if (begin >= tell_from_) {
    options_.changed(store_.trials());
    const double end = monotonic_seconds();
    tell_from_ = end + kShare * (end - begin);
  }
}

bool Runner::run_children() {
  for (;;) {
    store_.recover();
    while (!stopping_ && static_cast<std::int64_t>(running_.size()) < options_.parallel && start_one()) {
    }
    if (running_.empty() && (stopping_ || !others_run())) {
      return !stopping_;
    }
    wait();
    collect();
    if (StopSignals::requested() && !stopping_) {
      stopping_ = true;
      stop_children();
    }
  }
}

bool Runner::start_one() {
  if (StopSignals::requested()) {
    return false;
  }
  std::optional<Trial> trial = claim();
  if (!trial) {
    return false;
  }
  const fs::path folder = trial_folder(options_.dir, trial->number);
  const std::int64_t place = free_place();
  const auto environment = options_.environment ? options_.environment(place) : std::map<std::string, std::string>();
  auto child = std::make_unique<Child>(options_.command(*trial), environment, ChildOutput{folder / "output.txt"});
  Worker process = self_;
  process.process = ProcessId::of(child->pid());
  store_.set_trial_attribute(trial->id, "process", process.to_node());
  running_.push_back({std::move(*trial), std::move(child), place});
  options_.changed(store_.trials());
  return true;
}

std::int64_t Runner::free_place() const {
  for (std::int64_t place = 0;; ++place) {
    if (std::none_of(running_.begin(), running_.end(), [&](const Running& running) { return running.place == place; })) {
      return place;
    }
  }
}

void Runner::collect() {
  const std::size_t before = running_.size();
  for (auto running = running_.begin(); running != running_.end();) {
    const std::optional<Child::Ending> ending = running->child->poll();  // asked once: it may end at any moment
    if (ending) {
      end(*running, *ending);
    }
    running = ending ? running_.erase(running) : std::next(running);
  }
  if (running_.size() != before) {
    options_.changed(store_.trials());
  }
}

void Runner::end(Running& running, const Child::Ending& ending) {
  constexpr int kStopped = 75;  // by a signal, after a save (docs/running.md)
  const bool well = (ending.status == 0 || ending.status == kStopped) && ending.signal == 0;
  if (stopping_ && (well || ending.signal == SIGTERM || ending.status == 128 + SIGINT)) {
    store_.put_back(running.trial.id);  // nothing happens to one that has finished meanwhile
    return;
  }
  if (ending.signal != 0 || ending.status > 128) {  // of ranks the launcher gives 128 and the signal
    store_.finish_killed(running.trial.id, ending.describe());
    return;
  }
  const std::string line =
      well ? "the trial ended without a result" : failure_line(trial_folder(options_.dir, running.trial.number) / "output.txt");
  store_.finish(running.trial.id, TrialState::fail, std::nullopt,
                well           ? line
                : line.empty() ? ending.describe()
                               : format("{} ({})", line, ending.describe()));
}

void Runner::wait() {
  std::vector<pollfd> ends;
  for (const Running& running : running_) {
    if (running.child->descriptor() >= 0) {
      ends.push_back({running.child->descriptor(), POLLIN, 0});
    }
  }
  ::poll(ends.data(), ends.size(), kTickMs);
  beat();
  if (options_.ticked) {
    options_.ticked(store_.trials());
  }
}

void Runner::beat() {
  if (monotonic_seconds() - last_beat_ < kBeatSeconds) {
    return;
  }
  last_beat_ = monotonic_seconds();
  std::vector<std::int64_t> ids;
  for (const Running& running : running_) {
    ids.push_back(running.trial.id);
  }
  store_.beat(ids);
}

void Runner::stop_children() {
  for (const Running& running : running_) {
    running.child->signal(SIGTERM);
  }
}

/// Trials of other workers: should one of those die, its trials are ours.
bool Runner::others_run() {
  const std::vector<Trial> trials = store_.trials();
  return count_of(trials, TrialState::running) > 0 || count_of(trials, TrialState::waiting) > 0;
}

}  // namespace kf::sweep
