#include "run/start.h"

#include <iostream>
#include <utility>

#include "checkpoint/reader.h"
#include "config/plan/derived.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "run/mirror_place.h"
#include "run/outputs.h"
#include "run/run_record.h"
#include "run/stored_result.h"
#include "run/strategies.h"

namespace kf {
namespace {

void say_remarks(const Resume& resume) {
  for (const std::string& remark : resume.remarks) {
    log::warn("{}", remark);
  }
}

/// What the leader has found, on all ranks: "o" or "g" for own or given, then the path; nothing for none.
Earlier as_the_leader(const World& world, const Earlier& mine) {
  if (world.size() == 1) {
    return mine;
  }
  const std::string words = mine.checkpoint ? (mine.own ? "o" : "g") + mine.checkpoint->string() : "";
  const std::string told = world.all().tell(words).front();
  return told.empty() ? Earlier() : Earlier{fs::path(told.substr(1)), told.front() == 'o'};
}

}  // namespace

CheckpointOptions checkpoint_options(const RunContext& run) {
  CheckpointOptions out = retention_of(run.config, run.registries);
  out.dir = run.plan.checkpoint_dir;
  out.mirror = mirror_folder(run.config, run.plan);
  return out;
}

std::string frozen_source(const RunContext& run) {
  return config::saves_frozen(run.config) ? "" : run.config.checkpoint.init_from.value_or("");
}

Earlier earlier_checkpoint(const RunContext& run, const CheckpointManager& checkpoints) {
  if (!run.fresh) {
    if (std::optional<fs::path> newest = checkpoints.newest()) {
      return {std::move(newest), true};
    }
  }
  const std::optional<std::string>& given = run.config.checkpoint.load_path;
  return {given ? std::optional(find_checkpoint(*given)) : std::nullopt, false};
}

Resume resume_from(const RunContext& run, const Earlier& earlier, const std::vector<CodeFile>& compared, const std::string& data) {
  const bool identity = code_makes_identity(run.config, run.registries.catalog());
  return decide_resume({earlier.checkpoint, run.config, compared, identity, run.plan.max_steps, data});
}

bool is_complete_unsaved(const RunContext& run, const Earlier& earlier, const Resume& resume) {
  return resume.kind == Resume::Kind::resume && earlier.own && !run.config.checkpoint.on_completion && !run.config.run.go_on &&
         resume.changed.empty() && ended_unsaved(run.plan.dir, resume.state);
}

Start decide_start(const RunContext& run, const std::optional<RunFolders>& folders, const CheckpointManager& checkpoints,
                   const RunData& data) {
  Earlier earlier;
  if (folders) {
    if (!run.fresh) {
      folders->tidy();
    }
    earlier = earlier_checkpoint(run, checkpoints);
    spare_job_file(run.plan.dir);
  }
  earlier = as_the_leader(run.world, earlier);
  Start start;
  start.nothing_saved = !earlier.own;
  start.frozen_from = frozen_source(run);
  // A trial's folder holds its code, too, but what makes a sweep another one is its own question.
  start.compared = run.request.of_sweep ? std::vector<CodeFile>() : run.code;
  start.resume = resume_from(run, earlier, start.compared, data.record);
  const bool unsaved = folders && is_complete_unsaved(run, earlier, start.resume);
  start.end_unsaved = run.world.size() == 1 ? unsaved : !run.world.all().tell(unsaved ? "unsaved" : "").front().empty();
  if (start.end_unsaved) {
    start.resume.kind = Resume::Kind::complete;
  }
  return start;
}

RunResult already_complete(const RunContext& run, const Start& start) {
  const Resume& resume = start.resume;
  say_remarks(resume);
  const fs::path& dir = run.plan.dir;
  if (run.world.leads() && resume.checkpoint.parent_path() == run.plan.checkpoint_dir) {
    write_late_rows(run, resume.state);
  }
  // Of a checkpoint that another run made (checkpoint.load_path), that one's folder tells.
  const fs::path teller = path_exists(dir / "metrics.jsonl") ? dir : run_folder_of(resume.checkpoint).value_or(dir);
  RunResult result = stored_result(teller, resume.checkpoint, resume.state, rows_of(run).has_value());
  const bool stopped = result.status == "stopped";
  if (!run.world.leads()) {
    return result;
  }
  const std::string reason = result.reason.empty() ? "" : " (" + result.reason + ")";
  const char* const how = stopped ? "; run.go_on = true goes on, run.fresh = true starts over"
                          : start.end_unsaved
                              ? "; the steps since then were not saved (checkpoint.on_completion = false), run.go_on = true repeats them"
                              : "";
  std::cout << (stopped ? "already stopped" + reason : "already complete") << ": " << result.step << " steps, " << grouped(result.tokens)
            << " tokens, in " << resume.checkpoint.string() << how << '\n'
            << std::flush;
  return result;
}

void say_changes(const Resume& resume) {
  for (const Difference& d : resume.changed) {
    log::info("{} {} (checkpoint) -> {} (now)", d.key, d.before, d.after);
  }
  say_remarks(resume);
}

}  // namespace kf
