#include "checkpoint/mirror.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/files/durable_file.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/state_file.h"
#include "core/group_sync.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

/// The digest of what was read, and so of what should stand in the copy.
FileDigest copy_bytes(const fs::path& from, const fs::path& to) {
  const std::string fault = unlike_a_file(from);
  KF_CHECK(fault.empty(), Code::checkpoint, "cannot read {}: {}", from, fault);
  std::ifstream in(from, std::ios::binary);
  DurableFile out(to);
  std::string buffer(std::size_t{1} << 20, '\0');
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    out.write(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  KF_CHECK(in.eof() && !in.bad(), Code::checkpoint, "cannot read {}", from);
  return out.commit();
}

void copy_checked(const fs::path& from, const fs::path& to, const FileDigest* expected) {
  const FileDigest read = copy_bytes(from, to);
  KF_CHECK(expected == nullptr || read == *expected, Code::checkpoint, "{} is damaged: its checksum does not match", from);
  KF_CHECK(digest_of(to, read.bytes) == read, Code::checkpoint, "{} does not hold what was written into it", to);
}

bool is_same(const fs::path& checkpoint, const fs::path& copy) {
  return path_exists(copy / kStateFile) && read_file(copy / kStateFile) == read_file(checkpoint / kStateFile) &&
         checkpoint_fault(copy).empty();
}

}  // namespace

void copy_checkpoint(const fs::path& checkpoint, const fs::path& dir) {
  as_checkpoint_error([&] {
    const StateFile content = read_state_file(checkpoint);
    const fs::path target = dir / checkpoint.filename();
    if (is_same(checkpoint, target)) {
      return;
    }
    fs::create_directories(dir);
    remove_leftovers(dir);
    PendingFolder pending(target);
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
      const std::string name = entry.path().filename().string();
      const auto listed = content.files.find(name);
      if (name != kStateFile && entry.is_regular_file()) {  // hooks may have added files of their own
        copy_checked(entry.path(), pending.path() / name, listed != content.files.end() ? &listed->second : nullptr);
      }
    }
    copy_checked(checkpoint / kStateFile, pending.path() / kStateFile, nullptr);
    const std::string fault = checkpoint_fault(pending.path());
    KF_CHECK(fault.empty(), Code::checkpoint, "the copy is not whole: {}", fault);
    GroupSync::flush();
    pending.commit();
  });
}

Mirror::Mirror(CheckpointOptions options) : options_(std::move(options)), thread_([this] { work(); }) {}

Mirror::~Mirror() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Mirror::add(const fs::path& checkpoint) {
  Task task{checkpoint, step_of(checkpoint.filename().string())};
  std::vector<SavedStep> there;
  std::set<std::int64_t> passed_over;
  {
    const std::lock_guard lock(mutex_);
    there = there_;
    for (const Task& earlier : waiting_) {
      if (earlier.step && task.step) {
        passed_over.insert(*earlier.step);
      }
    }
  }
  std::erase_if(passed_over, [this](std::int64_t step) { return options_.keep_forever && options_.keep_forever(step); });
  if (task.step) {
    const std::optional<double> metric = options_.keep_best > 0 ? metric_in(checkpoint, options_.best_metric) : std::nullopt;
    task.outdated = outdated(std::move(there), {*task.step, metric}, options_);
  }
  {
    const std::lock_guard lock(mutex_);
    std::set<std::int64_t> begun = passed_over;  // meanwhile
    for (const Task& earlier : waiting_) {
      begun.erase(earlier.step.value_or(-1));
    }
    std::erase_if(passed_over, [&](std::int64_t step) { return begun.contains(step); });
    std::erase_if(waiting_, [&](const Task& earlier) { return earlier.step && passed_over.contains(*earlier.step); });
    waiting_.push_back(std::move(task));
  }
  changed_.notify_all();
  for (const std::int64_t step : passed_over) {
    log::info("{} is not copied to {}: a newer one is there before its turn has come", step_folder(step), options_.mirror);
  }
}

std::vector<std::int64_t> Mirror::needed() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t> out;
  for (const Task& task : waiting_) {
    if (task.step) {
      out.push_back(*task.step);
    }
  }
  if (current_ && current_->step) {
    out.push_back(*current_->step);
  }
  return out;
}

void Mirror::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !current_; });
}

void Mirror::work() {
  look();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      return;
    }
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    const Task task = *current_;
    lock.unlock();
    copy(task);
    look();
    lock.lock();
    current_.reset();
    changed_.notify_all();
  }
}

/// What fails costs the copy alone; a later one may go well again.
void Mirror::copy(const Task& task) noexcept {
  try {
    copy_checkpoint(task.checkpoint, options_.mirror);
    if (task.step) {
      point_link(options_.mirror / kLatestLink, step_folder(*task.step));
      remove_steps(options_.mirror, task.outdated);
    }
  } catch (const std::exception& e) {
    log::warn("{} was not copied to checkpoint.mirror ({}): {}; the checkpoint itself is whole", task.checkpoint, options_.mirror,
              e.what());
  }
}

void Mirror::look() {
  std::vector<SavedStep> there;
  try {
    there = saved_steps(options_.mirror, options_, std::numeric_limits<std::int64_t>::max());
  } catch (const std::exception&) {  // the next copy tells
  }
  const std::lock_guard lock(mutex_);
  there_ = std::move(there);
}

}  // namespace kf
