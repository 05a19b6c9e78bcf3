#pragma once
// Where a run begins: new, from a checkpoint, or not at all because it is complete.

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manager.h"
#include "run/code_record.h"
#include "run/resume.h"
#include "run/run_context.h"
#include "run/run_data.h"
#include "run/run_folders.h"

namespace kf {

struct Start {
  Resume resume;
  bool nothing_saved = true;       // in the run's own folder
  std::vector<CodeFile> compared;  // code that decides whether it is the same run
  std::string frozen_from;         // what checkpoints leave out comes from there (checkpoint.save_frozen)

  bool resumes() const { return resume.kind == Resume::Kind::resume; }
  bool end_unsaved = false;  // complete, and its last steps are in no checkpoint (checkpoint.on_completion = false)
  bool complete() const { return resume.kind == Resume::Kind::complete; }
};

/// What a run could go on from.
struct Earlier {
  std::optional<fs::path> checkpoint;  // the newest of the run's own, else that of checkpoint.load_path
  bool own = false;
};
/// Under run.fresh nothing of the run's own.
Earlier earlier_checkpoint(const RunContext& run, const CheckpointManager& checkpoints);
/// `decide_resume` from there; `compared` is the code that decides whether it is the same run, `data` what a checkpoint would say of them.
Resume resume_from(const RunContext& run, const Earlier& earlier, const std::vector<CodeFile>& compared, const std::string& data);

/// Whether a run that would repeat its last steps, for its end was not saved, is complete: the job is the same, and run.go_on does not ask.
bool is_complete_unsaved(const RunContext& run, const Earlier& earlier, const Resume& resume);

/// The leader reads what lies there and decides for all. Only what killed processes have left is removed. `folders`: the leader's. Throws
/// Code::config and Code::checkpoint.
Start decide_start(const RunContext& run, const std::optional<RunFolders>& folders, const CheckpointManager& checkpoints,
                   const RunData& data);

/// The run's checkpoints, by [checkpoint].
CheckpointOptions checkpoint_options(const RunContext& run);
/// Where frozen weights come from that its checkpoints leave out (checkpoint.save_frozen); "" where they save them.
std::string frozen_source(const RunContext& run);

/// Says that the run has ended already and gives the result of that end.
RunResult already_complete(const RunContext& run, const Start& start);

/// What differs from the checkpoint, for the log.
void say_changes(const Resume& resume);

}  // namespace kf
