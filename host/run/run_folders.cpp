#include "run/run_folders.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "checkpoint/files/folder.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "run/mirror_place.h"

namespace kf {
namespace {

bool holds_a_run(const fs::path& folder) {
  for (const char* mark : {".lock", "metrics.jsonl", "latest"}) {
    std::error_code ignored;
    if (path_exists(folder / mark) || fs::is_symlink(folder / mark, ignored)) {
      return true;
    }
  }
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) { return entry.path().filename().string().starts_with("step_"); });
}

bool is_within(const fs::path& path, const fs::path& folder) {
  const fs::path inside = fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(folder));
  return !inside.empty() && *inside.begin() != "..";
}

void make_folder(const char* key, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  KF_CHECK(!error && fs::is_directory(folder), Code::config, "{}: the folder {} cannot be made: {}", key, folder,
           error ? error.message() : "something else has this name");
}

/// Whether run.fresh has an earlier run to move away. Throws Code::config for a folder of something else, which is left alone, and
/// Code::other for a run that is still going on.
bool can_move(const fs::path& given, const char* key) {
  if (!path_exists(given) || fs::is_empty(given)) {
    return false;
  }
  const fs::path folder = fs::canonical(given);
  KF_CHECK(holds_a_run(folder), Code::config,
           "run.fresh: {} ({}) holds no earlier run, but other things, so it is not moved; name another {}", key, given, key);
  KF_CHECK(!is_within(fs::current_path(), folder), Code::config,
           "run.fresh: {} ({}) holds the working folder and cannot be moved; name another {}", key, given, key);
  if (path_exists(folder / ".lock")) {
    const RunLock idle(folder);  // a run that is still going on keeps its folder
  }
  return true;
}

/// The earlier run is moved aside, never deleted.
void move_aside(const fs::path& given, const char* key) {
  if (can_move(given, key)) {
    const fs::path folder = fs::canonical(given);
    const fs::path aside = free_name(folder);
    fs::rename(folder, aside);
    log::info("run.fresh: the earlier run was moved to {}", aside);
  }
}

void check_fresh(const config::Config& config, const config::Plan& plan) {
  const std::pair<const char*, std::optional<std::string>> sources[] = {{"checkpoint.init_from", config.checkpoint.init_from},
                                                                        {"checkpoint.load_path", config.checkpoint.load_path}};
  for (const auto& [key, source] : sources) {
    KF_CHECK(!source || !(is_within(*source, plan.dir) || is_within(*source, plan.checkpoint_dir)), Code::config,
             "{} ({}) lies in the run that run.fresh moves aside; give the new run another run.name", key, source.value_or(""));
  }
  can_move(plan.dir, "run.dir");
  can_move(plan.checkpoint_dir, "checkpoint.dir");
  if (const fs::path mirror = mirror_folder(config, plan); !mirror.empty()) {
    can_move(mirror, "checkpoint.mirror");
  }
}

void check_mirror(const fs::path& mirror, const config::Plan& plan) {
  for (const fs::path& own : {plan.dir, plan.checkpoint_dir}) {
    KF_CHECK(!is_within(mirror, own) && !is_within(own, mirror), Code::config,
             "checkpoint.mirror would copy checkpoints to {}, which is no place beside {}; name a folder on another file system", mirror,
             own);
  }
}

}  // namespace

RunFolders::RunFolders(const config::Config& config, const config::Plan& plan, bool fresh)
    : plan_(plan), mirror_(mirror_folder(config, plan)), fresh_(fresh) {
  if (!mirror_.empty()) {
    check_mirror(mirror_, plan);
    check_mirror_owner(mirror_, config, plan);
    copied_id_ = mirrored_id(mirror_);
  }
  if (fresh_) {
    check_fresh(config, plan);
  }
  if (path_exists(plan.dir / ".lock")) {
    run_.emplace(plan.dir);
  }
}

void RunFolders::make(const CheckpointManager& checkpoints, bool nothing_saved) {
  if (fresh_) {
    run_.reset();  // the lock goes with the folder
    move_aside(plan_.dir, "run.dir");
    move_aside(plan_.checkpoint_dir, "checkpoint.dir");
    if (!mirror_.empty()) {
      move_aside(mirror_, "checkpoint.mirror");
    }
  }
  if (!run_) {
    make_folder("run.dir", plan_.dir);
    run_.emplace(plan_.dir);
  }
  make_folder("checkpoint.dir", plan_.checkpoint_dir);  // now, and not when the first checkpoint is due
  if (!is_within(plan_.checkpoint_dir, plan_.dir)) {    // another run may save there, too
    checkpoints_.emplace(plan_.checkpoint_dir);
  }
  if (!mirror_.empty()) {
    make_folder("checkpoint.mirror", mirror_);
    copies_.emplace(mirror_);
  }
  checkpoints_id_ = file_id(plan_.checkpoint_dir);
  tidy();
  KF_CHECK(!nothing_saved || !checkpoints.newest(), Code::other,
           "another process has saved a checkpoint in {} meanwhile; start again to go on", plan_.checkpoint_dir);
}

void RunFolders::sign_copies(const std::string& id) const {
  if (!mirror_.empty()) {
    sign_mirror(mirror_, id, plan_.dir);
  }
}

void RunFolders::tidy() const {
  if (!run_) {
    return;
  }
  remove_temporaries(plan_.dir, {"job.toml", "data.fingerprint", "result.json", "run.json", "metrics.jsonl", "metrics.csv", "latest"});
  remove_abandoned(fs::path(plan_.dir) / "exports");  // where an export by hand may be going on
  std::error_code error;
  for (const fs::path& dir : {plan_.dir, plan_.checkpoint_dir}) {
    if (!fs::is_directory(dir, error) || (!checkpoints_ && !is_within(dir, plan_.dir))) {
      continue;
    }
    try {
      remove_leftovers(dir);
    } catch (const fs::filesystem_error& fault) {  // a complete run on a read-only disk can still say that it is complete
      log::warn("what a killed process left was not removed: {}", fault.what());
    }
  }
}

void RunFolders::check_there() {
  for (const auto& [lock, dir] : {std::pair(&run_, &plan_.dir), std::pair(&checkpoints_, &plan_.checkpoint_dir)}) {
    KF_CHECK(!*lock || (*lock)->holds(), Code::checkpoint,
             "the folder {} was deleted, moved or replaced while the run was on: nothing more is saved there; start again from what is "
             "left of it",
             *dir);
  }
  const std::optional<FileId> now = file_id(plan_.checkpoint_dir);
  if (checkpoints_id_ && now != checkpoints_id_) {
    log::warn("the folder {} was deleted or replaced while the run was on; {}", plan_.checkpoint_dir,
              now ? "saves go into the new one" : "it is made again, without the earlier checkpoints");
  }
  if (!now) {
    fs::create_directories(plan_.checkpoint_dir);
  }
  checkpoints_id_ = file_id(plan_.checkpoint_dir);
}

void keep_old_rows(const fs::path& metrics) {
  if (!path_exists(metrics) || fs::is_empty(metrics)) {
    return;
  }
  const fs::path aside = free_name(metrics);
  fs::rename(metrics, aside);
  log::info("there is no checkpoint to go on from, so the run starts over; its earlier rows are in {}", aside);
}

void spare_job_file(const fs::path& dir) {
  KF_CHECK(!path_exists(dir / "job.toml") || holds_a_run(dir), Code::config,
           "run.dir ({}) holds a job.toml that no run has made, and the run's own would replace it; name another run.dir", dir);
}

}  // namespace kf
