#pragma once
// The runs below a folder, and how each is.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"

namespace kf::report {

enum class RunState {
  running,     // a process holds the folder's lock
  finished,    // all of its steps
  stopped,     // before its last step: by a signal, a hook, eval.target_loss
  failed,      // with an error
  killed,      // no process holds it any more, and none has said how it ended
  away,        // likewise, but it was another machine's, whose locks are not seen here
  unreadable,  // its run.json cannot be read; `reason` says why
};
/// "running", ...
std::string_view to_word(RunState state);

/// What files tell at a glance.
struct RunSummary {
  fs::path folder;
  std::string id, name;  // as the run's own record has them; the folder's name where it does not tell
  std::vector<std::string> tags;
  RunState state = RunState::unreadable;
  std::string reason;  // why it stopped or failed; "" where nobody said
  std::string host, device;
  std::int64_t starts = 0;                // how often it was started
  std::optional<std::int64_t> step;       // completed ones, by its rows and its end; nothing where neither tells
  std::optional<std::int64_t> max_steps;  // of its settings
  // Of the last row that has it.
  std::optional<double> loss, tokens_per_sec, tokens;
  std::optional<double> eval_loss;  // of the last evaluation
  double began = 0;                 // of its first start, in seconds since 1970 by that machine's clock; 0: unknown
  double changed = 0;               // when its rows or its record were last written, by the clock of the disk
};

/// What is no run, and could not be looked into.
struct Unreadable {
  fs::path path;
  std::string fault;
};

struct RunList {
  std::vector<RunSummary> runs;  // by `began`, the newest last; then by folder
  std::vector<Unreadable> unreadable;
};

/// Whether `folder` is that of a run: it has a run.json, or a job.toml with rows or checkpoints beside it.
bool is_run(const fs::path& folder);

/// All runs in `folder`, itself included, at most `deepest` folders below it. Runs are not searched for runs, hidden folders and links to
/// folders are passed over. Throws Code::other where `folder` is none.
RunList list_runs(const fs::path& folder, int deepest = 6);

/// Of one run. Never throws for what lies in the folder.
RunSummary summary_of(const fs::path& folder);

}  // namespace kf::report
