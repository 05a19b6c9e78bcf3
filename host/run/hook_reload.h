#pragma once
// The hooks of a run's script, read again while it trains.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/run_context.h"
#include "train/loop/hooks.h"
#include "train/loop/prompt.h"

namespace kf {

class HookReload {
 public:
  /// When the script is to be given up: it is asked while the script runs (never, where it is empty), and `why` stands in the message.
  struct Limit {
    std::function<bool()> is_over = {};
    const char* why = "";
  };

  explicit HookReload(const RunContext& run);
  ~HookReload();
  HookReload(const HookReload&) = delete;
  HookReload& operator=(const HookReload&) = delete;

  /// Runs the script in a Lua of its own up to its first kf.run, on all ranks, and puts its hooks where those of the job are; each goes on
  /// from the state of the old one with its name. `code`: what an earlier reload has read (as `code()` gave it) instead of the files; empty
  /// for these. Where anything is wrong on any rank the old hooks stay, and the outcome says so: a job that is not a script's, a broken
  /// file, settings other than hooks that have changed, a hook that does not take the state or has one that cannot be saved, os.exit.
  /// `limit` ends what runs for too long.
  Outcome reload(const std::string& code, Hooks& hooks, HookContext& context, const Limit& limit);
  /// What the last one has read, as JSON; "" before any.
  std::string code() const;
  /// The same, file by file.
  std::vector<CodeFile> taken() const;
  /// The files of the script: where the hooks come from now.
  std::vector<fs::path> files() const;

 private:
  struct Reading;

  std::unique_ptr<Reading> read(const std::string& code, Hooks& hooks, HookContext& context, const Limit& limit) const;
  void make_hooks(Reading& reading, config::Node job) const;

  const RunContext& run_;
  std::unique_ptr<Reading> now_;  // what the hooks of now were made in; null before any reload
};

}  // namespace kf
