#pragma once
// Ctrl-C and SIGTERM as a flag that the training loop reads between steps.

#include <limits>
#include <memory>

namespace kf {

/// While one exists, the first SIGINT or SIGTERM sets a flag (and says so on stderr); the second leaves at once with status 130.
/// SIGUSR1 (Slurm's usual warning) and SIGHUP (the terminal is gone) count as the first. A signal that was ignored when the program began
/// (nohup, a shell's background jobs) stays ignored. A reader of standard output that goes away (SIGPIPE) ends nothing. Restores the
/// earlier handlers when destroyed. One inside of another (a run that a longer work starts) shares its flag: a signal that has arrived
/// before counts for the inner one, and one that arrives within it for the outer one.
class StopSignals {
 public:
  /// `grace`: when it still exists that many seconds after the first signal, the process says what it hangs in (core/running.h) and leaves
  /// with status 130. That is a thread's work, so it holds for endless loops of compiled code and for calls that do not return, too.
  explicit StopSignals(double grace = std::numeric_limits<double>::infinity());
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether a signal has arrived.
  static bool requested();
  /// How much of the grace is left, in seconds, not below 0; infinite before the first signal.
  double seconds_left() const;

  /// Where the notice of the first signal goes, instead of standard error; at -1 nobody reads it.
  static void tell(int fd);
  /// `listener` is called by the signal's own handler, after the flag is set: it may do what signal handlers may. Null for none.
  static void set_listener(void (*listener)());

 private:
  class Watchdog;
  double grace_;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace kf
