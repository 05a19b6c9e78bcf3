#include "metrics/tensorboard/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "config/plan/plan.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/tensorboard/event.h"
#include "metrics/tracker/job_settings.h"
#include "metrics/tracker/make_folder.h"
#include "metrics/tracker/numbers.h"

namespace kf {
namespace {

namespace tb = tensorboard;

constexpr std::size_t kMostWaiting = std::size_t{256} << 20U;  // bytes
constexpr const char* kSetting = "metrics.tensorboard_dir";
constexpr const char* kPrefix = "events.out.tfevents.";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// The run's own below run.dir. Other folders are shared: TensorBoard takes a folder for a run, so each run has one in them.
fs::path folder_of(const RunInfo& run) {
  const bool own = run.config.metrics.tensorboard_dir == config::MetricsConfig().tensorboard_dir;
  return own ? run.plan.tensorboard_dir : run.plan.tensorboard_dir / run.plan.name;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(kPrefix) && entry.is_regular_file(error)) {
      out.push_back(entry.path());
    }
  }
  return out;
}

/// Readers go through files in the order of their names, which begin with a time of ten digits: behind all that are there, even if a clock
/// was set back.
fs::path next_file(const fs::path& folder) {
  auto second = static_cast<std::int64_t>(now());
  for (const fs::path& path : event_files(folder)) {
    const std::string digits = path.filename().string().substr(std::string_view(kPrefix).size(), 10);
    std::int64_t there = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), there);
    second = std::max(second, there + 1);
  }
  return folder / format("{}{}.{}.{}", kPrefix, second, host_name(), ::getpid());
}

/// An earlier file without values of step `first` and later ones. Where that cannot be, the first record of the next file tells it.
void cut(const fs::path& path, std::int64_t first) {
  try {
    std::string kept;
    std::size_t before = 0;
    {
      const MappedFile file(path);
      before = file.bytes().size();
      kept = tb::records_before({reinterpret_cast<const char*>(file.bytes().data()), before}, first);
    }
    if (kept.size() != before) {
      write_file_atomic(path, kept);
    }
  } catch (const Error& e) {
    log::warn("{} still has steps that the run does again: {}", path, e.what());
  }
}

}  // namespace

void TensorBoardSink::begin_file(std::int64_t first) {
  std::deque<StepRecord> waiting = std::exchange(loaded_, {});
  if (late_) {
    waiting = std::move(late_->waiting());
    first = std::min(first, late_->cut_step().value_or(first));
  }
  const bool unwritten = late_ && !file_;
  late_.emplace(unwritten ? fs::path(late_->path()) : next_file(folder_), "events");
  file_.reset();
  late_->waiting() = std::move(waiting);
  late_->cut(first);
  bytes_ = bytes_of(late_->waiting());
}

/// Opens the file, behind earlier ones without what is of step `first` and later ones.
void TensorBoardSink::open(std::int64_t first) {
  KF_CHECK(make_folder(folder_, kSetting), Code::other, "cannot make the folder {}: the disk is full", folder_);
  for (const fs::path& path : event_files(folder_)) {
    if (path != late_->path()) {
      cut(path, first);
    }
  }
  HeldFile opened(late_->path());
  opened.append(tb::version_record(now()) + tb::start_record(now(), first));
  file_ = std::move(opened);
}

void TensorBoardSink::begin(const RunInfo& run) {
  folder_ = folder_of(run);
  make_folder(folder_, kSetting);
  const std::int64_t completed = run.completed_steps;
  std::erase_if(loaded_, [&](const StepRecord& record) { return completed == 0 || record.step > completed; });
  // What waited when the checkpoint was saved may lie in the file before: it is left out there and written here.
  const std::int64_t next = completed == 0 ? 0 : completed + 1;
  begin_file(loaded_.empty() ? next : loaded_.front().step);
  add(completed, tb::settings_record(now(), run.plan.name, setting_leaves(job_settings(run))) +
                     tb::text_record(now(), completed, "job", run.job_toml));
  flush();
}

void TensorBoardSink::row(const StepRow& row) { add(row.step, tb::scalars_record(row.time, row.step, tracked_numbers(row))); }

void TensorBoardSink::eval(const EvalResult& result) { add(result.step, tb::scalars_record(now(), result.step, tracked_numbers(result))); }

void TensorBoardSink::text(const TextSample& sample) { add(sample.step, tb::text_record(now(), sample.step, sample.name, sample.text)); }

void TensorBoardSink::histograms(const Histograms& all) { add(all.step, tb::histograms_record(now(), all)); }

void TensorBoardSink::step_over(std::int64_t /*step*/) { flush(); }

void TensorBoardSink::rewind(std::int64_t step) {
  flush();
  std::erase_if(late_->waiting(), [step](const StepRecord& record) { return record.step > step; });
  begin_file(step + 1);
  settle();
}

/// What comes for another step than the one before ends its record.
void TensorBoardSink::add(std::int64_t step, const std::string& records) {
  if (step != running_.step) {
    flush();
  }
  running_.step = step;
  running_.bytes += records;
}

void TensorBoardSink::flush() {
  if (running_.bytes.empty()) {
    return;
  }
  bytes_ += running_.bytes.size();
  late_->waiting().push_back(std::exchange(running_, {}));
  settle();
  late_->check_room(bytes_ <= kMostWaiting, format("events of {} steps, {} MiB,", late_->waiting().size(), bytes_ >> 20U));
}

void TensorBoardSink::settle() {
  late_->settle(
      file_, [this](std::int64_t first) { open(first); },
      [this](const StepRecord& record) {
        file_->append(record.bytes);
        bytes_ -= record.bytes.size();
      });
}

void TensorBoardSink::before_save() {
  flush();
  late_->before_save(file_);
}

void TensorBoardSink::saved(std::int64_t /*step*/, const fs::path& /*checkpoint*/) { late_->sync(file_); }

void TensorBoardSink::end(const RunResult& result) {
  if (result.status == "complete") {
    add(result.step, tb::complete_record(now()));
  }
  flush();
  if (late_->is_on()) {
    settle();
  }
  late_->check_end();
}

config::Node TensorBoardSink::state() {
  flush();  // what the running step has so far belongs to the checkpoint
  return to_state(late_->waiting());
}

void TensorBoardSink::load(const config::Node& state) { loaded_ = records_of(state, "TensorBoard"); }

}  // namespace kf
