#pragma once
// Signals that a process which has started others hands on to them.

#include <functional>

namespace kf {

/// From its making on, SIGINT, SIGTERM, SIGUSR1 and SIGHUP end nothing here: they are counted. One that was ignored when the program began
/// (nohup) stays ignored.
class PassedSignals {
 public:
  PassedSignals();
  /// Calls `send` with each signal that has arrived since the last time.
  void take(const std::function<void(int number)>& send);
};

}  // namespace kf
