#include <unistd.h>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/line/arguments.h"
#include "app/line/option_list.h"
#include "app/script/script_session.h"
#include "config/load/load.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "core/wrap.h"
#include "run/run.h"
#include "run/run_record.h"
#include "train/profile/profile.h"

namespace kf {
namespace {

constexpr double kMostSteps = 1000;  // a trace of more is too large to be looked at

std::int64_t number_of(const OptionList& options, const std::string& name, std::int64_t usual, double least) {
  return options.has(name) ? option_number<std::int64_t>(name, options.last(name), least, kMostSteps) : usual;
}

/// Those of the profile come first, so that the user's win.
std::vector<std::string> overrides_of(const OptionList& options, std::int64_t first, std::int64_t end, const fs::path& run) {
  const std::string& file = options.words[0];
  const fs::path out = options.has("--out") ? fs::path(options.last("--out")) : fs::path("profiles") / fs::path(file).stem();
  std::vector<std::string> all{"--run.dir=" + run.string(),
                               "--run.id=",
                               "--checkpoint.dir=" + (run / config::CheckpointConfig().dir).string(),
                               "--checkpoint.mirror=",
                               "--profiling.enable=true",
                               "--profiling.start_step=" + std::to_string(first),
                               "--profiling.end_step=" + std::to_string(end),
                               "--profiling.trace_dir=" + fs::absolute(out).string()};
  all.insert(all.end(), options.overrides.begin(), options.overrides.end());
  return all;
}

/// Folders that are made for files to come: where none comes, they go again.
class FoldersToCome {
 public:
  explicit FoldersToCome(const fs::path& folder) {
    std::error_code error;
    for (fs::path at = fs::absolute(folder).lexically_normal(); !fs::exists(at, error) && at.has_relative_path(); at = at.parent_path()) {
      made_.push_back(at);
    }
  }
  ~FoldersToCome() {
    std::error_code not_empty;
    for (const fs::path& folder : made_) {
      fs::remove(folder, not_empty);
    }
  }
  FoldersToCome(const FoldersToCome&) = delete;
  FoldersToCome& operator=(const FoldersToCome&) = delete;

 private:
  std::vector<fs::path> made_;  // the innermost first
};

/// The files are a matter of minutes later: a folder that takes none is said before.
void check_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  KF_CHECK(!error, Code::other, "the folder {} cannot be made: {}; --out names another one", folder, error.message());
  const fs::path probe = folder / format(".kf-profile-{}", ::getpid());
  try {
    write_file_atomic(probe, "");
  } catch (Error& failed) {
    throw failed.context("no profile can be written; --out names another folder");
  }
  fs::remove(probe, error);
}

/// When it was last written; the earliest of all times where it is not there.
fs::file_time_type written_at(const fs::path& file) {
  std::error_code missing;
  const fs::file_time_type time = fs::last_write_time(file, missing);
  return missing ? fs::file_time_type::min() : time;
}

}  // namespace

int profile_command(const Arguments& args) {
  Arguments words = args;
  const Arguments for_script = take_script_arguments(words);
  const OptionList options = parse_options(words, {"kf-host profile", {"--steps", "--warmup", "--out"}, {}, true});
  KF_CHECK(options.words.size() == 1, Code::config, "{}", folded(usage::kProfile));
  KF_CHECK(!options.has("--out") || !options.last("--out").empty(), Code::config, "--out: the name of a folder must follow");
  const std::string& file = options.words[0];
  const std::int64_t first = number_of(options, "--warmup", 2, 0) + 1;
  const std::int64_t end = first + number_of(options, "--steps", 5, 1);
  const ScratchFolder scratch("kf-profile", Code::other);
  const bool scripted = file.ends_with(".lua");
  ScriptSession session(scripted ? file : "", for_script);
  config::Request request;
  request.overrides = overrides_of(options, first, end, scratch.path() / "run");
  request.world = 1;
  if (scripted) {
    KF_CHECK(session.job().has_value(), Code::config, "{} returns no job and calls no kf.run", file);
    request.recipe = *session.job();
  } else {
    request.job = is_run_folder(file) ? fs::path(file) / "job.toml" : fs::path(file);
  }
  const config::Loaded loaded = config::load_or_fail(request, session.registries().catalog());
  const config::ProfilingConfig& profiling = loaded.config.profiling;
  const fs::path tables = profile_file({profiling.start_step, profiling.end_step, profiling.trace_dir}, "txt");
  const FoldersToCome to_come(profiling.trace_dir);
  check_folder(profiling.trace_dir);
  const fs::file_time_type before = written_at(tables);
  RunRequest run{loaded, session.begin(loaded.config), file, options.overrides.size()};
  run.only_until = end - 1;
  const RunResult result = run_job(run, session.registries());
  KF_CHECK(result.step >= first, Code::config, "the run was over at step {}, and the profile begins with step {}: --warmup {} or less",
           result.step, first, result.step - 1);
  KF_CHECK(!profiling.enable || written_at(tables) != before, Code::other, "no profile was written to {}; the warning above says why",
           profiling.trace_dir);
  return 0;
}

}  // namespace kf
