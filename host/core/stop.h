#pragma once
// Ctrl-C and SIGTERM as a flag that the training loop reads between steps.

namespace kf {

/// While one exists, the first SIGINT or SIGTERM sets a flag (and says so on stderr); the second leaves at once with status 130.
/// SIGUSR1 (Slurm's usual warning) and SIGHUP (the terminal is gone; not under nohup) count as the first. A reader of standard output that
/// goes away (SIGPIPE) ends nothing. Restores the earlier handlers when destroyed. At most one at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether a signal has arrived.
  static bool requested();

  /// `listener` is called by the signal's own handler, after the flag is set: it may do what signal handlers may. Null for none.
  static void set_listener(void (*listener)());
};

}  // namespace kf
