#pragma once
// Ends that no exception sees: signals of a crash, abort(), exit() from inside of a run.

namespace kf {

/// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT say on stderr what ran (core/running.h) before they end the process as they
/// would have, and so does exit() while a run is on (RunIsOn) or a script runs, which then ends with status 1. Handlers that are there
/// already stay (sanitizers).
void watch_crashes();

/// A run that exit() would cut off without a save.
class RunIsOn {
 public:
  RunIsOn();
  ~RunIsOn();
  RunIsOn(const RunIsOn&) = delete;
  RunIsOn& operator=(const RunIsOn&) = delete;
};

}  // namespace kf
