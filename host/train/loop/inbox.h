#pragma once
// What comes to a run from outside while it trains.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/stop.h"

namespace kf {

/// What somebody outside asks for.
struct RunMessage {
  enum class Kind {
    stop,       // to end behind this step, saved
    unwritten,  // the same, as a failure: rows cannot be written
    chunk,      // to run `text`, Lua, behind this step (prompt.h)
    reload      // to read the script's hooks again
  };
  Kind kind = Kind::stop;
  std::string text = {};
  std::int64_t asker = 0;  // who is to be answered; 0: nobody

  bool operator==(const RunMessage&) const = default;
};

/// Where messages arrive. The training thread asks at the step boundary alone: there all ranks follow the messages of all (agree.h).
class Inbox {
 public:
  virtual ~Inbox() = default;
  /// Those that have come since the last time, in order. Does not wait.
  virtual std::vector<RunMessage> take() = 0;
  /// Seconds until the process is ended from outside; infinite while nobody has asked for it.
  virtual double seconds_left() const { return std::numeric_limits<double>::infinity(); }
};

/// Ctrl-C, SIGTERM and their like (StopSignals), while it exists.
class SignalInbox final : public Inbox {
 public:
  /// `grace`: as StopSignals has it.
  explicit SignalInbox(double grace = std::numeric_limits<double>::infinity()) : signals_(grace) {}

  std::vector<RunMessage> take() override;
  double seconds_left() const override { return signals_.seconds_left(); }

 private:
  StopSignals signals_;
  bool told_ = false;
};

}  // namespace kf
