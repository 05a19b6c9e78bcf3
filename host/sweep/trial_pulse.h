#pragma once
// What goes on beside a trial that runs in the worker's own process.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/fs.h"
#include "sweep/trial.h"

namespace kf::sweep {

/// While one exists, a thread says every ten seconds that trial `id` of the sweep in `dir` is worked on, and calls `ticked`, where there is
/// one, about once a second with all trials. It opens the store itself, at the first of these, so a short trial costs a thread alone. What
/// goes wrong there is a warning.
class TrialPulse {
 public:
  TrialPulse(const fs::path& dir, std::int64_t id, std::function<void(const std::vector<Trial>&)> ticked);
  ~TrialPulse();
  TrialPulse(const TrialPulse&) = delete;
  TrialPulse& operator=(const TrialPulse&) = delete;

 private:
  void work();
  bool wait_for_tick();

  const fs::path dir_;
  const std::int64_t id_;
  const std::function<void(const std::vector<Trial>&)> ticked_;
  std::mutex mutex_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace kf::sweep
