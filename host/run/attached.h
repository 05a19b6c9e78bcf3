#pragma once
// What is said to a run from outside: by prompts that are attached to it (kf-host attach), or by a file of what was said to an earlier one.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "attach/server.h"
#include "bindings/script/live_prompt.h"
#include "checkpoint/state.h"
#include "metrics/run_result.h"
#include "run/hook_reload.h"
#include "run/run_context.h"
#include "run/steering_record.h"
#include "train/loop/prompt.h"

namespace kf {

/// By what a changed file is known.
struct FileStamp {
  std::uint64_t inode = 0, size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  // when it was written
  bool operator==(const FileStamp&) const = default;
};

class Attached final : public Prompt {
 public:
  /// `state`: what the run begins with; `own`: from a checkpoint of its own. Throws Code::config where run.steering cannot be read; a
  /// socket that cannot be made is a warning.
  Attached(const RunContext& run, const CheckpointState& state, bool own);
  ~Attached() override;
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  /// What has come, for the end of the update `step`: see Inbox::take. Nothing on ranks other than the leader.
  std::vector<RunMessage> take(std::int64_t step);
  Outcome run(const RunMessage& chunk, HookContext& context) override;
  Outcome reload(const RunMessage& wish, Hooks& hooks, HookContext& context) override;
  void keep(const RunMessage& said, std::int64_t step) override;
  void answer(const RunMessage& said, const Outcome& outcome, std::int64_t step) override;
  std::int64_t kept() const override { return kept_; }
  void over(const RunResult& result) override;

 private:
  void listen();
  fs::path gone_mark(std::int64_t asker) const;
  std::function<bool()> given_up(std::int64_t asker) const;
  bool code_changed();

  const RunContext& run_;
  LivePrompt prompt_;
  HookReload reload_;
  std::int64_t kept_ = 0;                                     // entries
  std::vector<Steered> repeated_;                             // what is said again,
  std::size_t next_ = 0;                                      // and how much of it has been
  std::optional<SteeringRecord> record_;                      // of the leader
  std::chrono::steady_clock::time_point looked_;              // at the files of the script, with run.reload = "on_change",
  std::map<fs::path, std::optional<FileStamp>> stamps_ = {};  // and what they were then
  std::optional<attach::Server> server_;                      // of the leader
};

}  // namespace kf
