#pragma once
// What is said to a run while it trains (kf-host attach), and how it answers.

#include <cstdint>
#include <string>

#include "config/tree/node.h"
#include "core/error.h"
#include "train/loop/hook.h"
#include "train/loop/inbox.h"

namespace kf {

class Hooks;
struct RunResult;

/// What became of it, on one rank.
struct Outcome {
  std::string output = {};   // what it printed, and the values that it gave
  std::string error = {};    // "" for none
  Code code = Code::script;  // of the error
  bool changed = false;      // it changed what later steps depend on, or later chunks; requests (Controls) are not meant
};

/// The run's end of the line. Every rank has one; clients and files are the leader's.
class Prompt {
 public:
  virtual ~Prompt() = default;
  /// Runs a chunk of Lua as a hook's on_step_end would run. What goes wrong in it is in the outcome.
  virtual Outcome run(const RunMessage& chunk, HookContext& context) = 0;
  /// Reads the script's hooks again.
  virtual Outcome reload(const RunMessage& wish, Hooks& hooks, HookContext& context) = 0;
  /// What has changed the run behind `step`, or was itself repeated, is kept, so that it can be done again.
  virtual void keep(const RunMessage& said, std::int64_t step) = 0;
  /// Tells the outcome to who asked, and the log.
  virtual void answer(const RunMessage& said, const Outcome& outcome, std::int64_t step) = 0;
  /// How much has been kept, for checkpoints: what comes behind one is superseded when the run goes on from it.
  virtual std::int64_t kept() const = 0;
  /// The run came to its end.
  virtual void over(const RunResult& result) = 0;
};

}  // namespace kf
