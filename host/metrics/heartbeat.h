#pragma once
// metrics.heartbeat_sec: a file by which a watchdog sees that a run goes on.

#include <cstdint>
#include <string>

#include "core/fs.h"
#include "metrics/throughput.h"

namespace kf {

/// Writes {"unix": 1795902000.25, "step": 12, "doing": "steps", "pid": 4711, "every": 30.0} from the thread that trains: a run that hangs
/// leaves an old file. Readers see the old or the new one, never half.
class Heartbeat {
 public:
  /// `every` seconds; 0: nothing is ever written.
  Heartbeat(fs::path file, double every, Clock clock = steady_clock());

  /// Writes where the last time is `every` seconds ago. Throws Code::other.
  void beat(const std::string& doing, std::int64_t step);
  /// Writes in any case: something begins that may take long, or the run ends.
  void now(const std::string& doing, std::int64_t step);

 private:
  fs::path file_;
  double every_;
  Clock clock_;
  double last_ = -1;
};

}  // namespace kf
