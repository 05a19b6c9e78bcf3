#pragma once
// metrics.heartbeat_sec: a file by which a watchdog sees that a run goes on.

#include <cstdint>
#include <functional>
#include <string>

#include "core/fs.h"
#include "metrics/outage.h"
#include "metrics/throughput.h"

namespace kf {

/// Writes {"unix": 1795902000.25, "step": 12, "doing": "steps", "pid": 4711, "every": 30.0} from the thread that trains: a run that hangs
/// leaves an old file. Readers see the old or the new one, never half.
class Heartbeat {
 public:
  /// Somebody beside the file who wants to know.
  using Listener = std::function<void(const std::string& doing, std::int64_t step)>;

  /// `every` seconds; 0: nothing is ever written. `listener` is told of every call; may be empty.
  Heartbeat(fs::path file, double every, Clock clock = steady_clock(), Listener listener = {});

  /// Writes where the last time is `every` seconds ago. What cannot be written is said once, and the run goes on: the file grows old.
  void beat(const std::string& doing, std::int64_t step);
  /// Writes in any case: something begins that may take long, or the run ends.
  void now(const std::string& doing, std::int64_t step);

 private:
  void write(const std::string& doing, std::int64_t step);

  fs::path file_;
  double every_;
  Clock clock_;
  Listener listener_;
  double last_ = -1;
  Outage outage_;
};

}  // namespace kf
