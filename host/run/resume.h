#pragma once
// A run is continued under its name. This decides whether it may be, from where, and what changed since.

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/state.h"
#include "config/plan/resume_class.h"
#include "config/schema/config.h"
#include "run/code_record.h"

namespace kf {

/// A key whose value is not the one that the checkpoint was made with.
struct Difference {
  std::string key;
  std::string before;  // as JSON
  std::string after;
};

/// Every key of the job with its value, and the own tables of parts as "kind.name": what a checkpoint keeps to compare a later job with.
/// run.*, checkpoint.dir, checkpoint.load_path and checkpoint.accept_changes are left out: they are about the folder and the start.
config::Table job_values(const config::Config& config);

/// In the order of `after`. A key that `before` lacks had its default: an older program did not know it.
std::vector<Difference> differences(const config::Table& before, const config::Table& after);

/// What is asked for now, to be compared with what a checkpoint says.
struct ResumeQuestion {
  std::optional<fs::path> newest;  // checkpoint; none: the run is new
  const config::Config& config;
  const std::vector<CodeFile>& code;  // of the script; empty for TOML
  bool code_is_identity = true;       // a part of the script makes the model, the data or the loss
  std::int64_t max_steps = 0;
  std::string data_fingerprint;
};

struct Resume {
  enum class Kind { fresh, resume, complete };
  Kind kind = Kind::fresh;
  fs::path checkpoint;
  std::vector<Difference> changed;   // keys that say how it goes on, and accepted ones; those that move no number are left out
  std::vector<std::string> remarks;  // of what else has changed, for the log
  CheckpointState state;             // of the checkpoint, without tensors
};

/// What to do with the newest checkpoint of the run, by what the changed keys mean (config/plan/resume_class.h):
/// - an unfinished run goes on, and so does a finished one of which more steps are asked, or that a hook stopped and run.go_on takes up;
/// - otherwise a finished one is complete.
/// Throws Code::config, naming what changed, for another model, data source or loss, other data files or other code of these, each of which
/// checkpoint.accept_changes takes; and for a finished run that differs in its course and has no more steps to make.
Resume decide_resume(const ResumeQuestion& question);

}  // namespace kf
