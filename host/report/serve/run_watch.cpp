#include "report/serve/run_watch.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "report/page/json_writer.h"
#include "report/read/run_list.h"

namespace kf::report {
namespace {

constexpr std::size_t kBuckets = 1200;    // stretches of a curve: as many as a wide chart has pixels
constexpr std::size_t kMostReaders = 32;  // runs whose rows stay in memory
constexpr std::chrono::seconds kShortest(1);

}  // namespace

std::shared_ptr<const RunWatch::Snapshot> RunWatch::look() const {
  auto out = std::make_shared<Snapshot>();
  try {
    out->runs = shown_runs(list_runs(root_).runs, root_);
  } catch (const Error&) {
    out->runs.clear();  // the folder has gone, or is not there yet
  }
  JsonWriter json;
  json.begin_array();
  for (const ShownRun& run : out->runs) {
    json.begin_object();
    write_summary(json, run);
    json.end_object();
  }
  json.end_array();
  out->list = json.take();
  return out;
}

std::shared_ptr<const RunWatch::Snapshot> RunWatch::now() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point begin = Clock::now();
  if (snapshot_ == nullptr || begin >= due_) {
    std::shared_ptr<const Snapshot> fresh = look();
    const Clock::time_point end = Clock::now();
    due_ = end + std::max<Clock::duration>(kShortest, 10 * (end - begin));
    if (snapshot_ == nullptr || snapshot_->list != fresh->list) {
      auto numbered = std::make_shared<Snapshot>(*fresh);
      numbered->number = snapshot_ == nullptr ? 1 : snapshot_->number + 1;
      snapshot_ = std::move(numbered);
    }
  }
  return snapshot_;
}

std::shared_ptr<RunWatch::Reader> RunWatch::reader(const ShownRun& run) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(readers_.begin(), readers_.end(), [&](const auto& one) { return one->key == run.key; });
  if (found != readers_.end()) {
    readers_.splice(readers_.begin(), readers_, found);
  } else {
    readers_.push_front(std::make_shared<Reader>(run.key, run.summary.folder));
    if (readers_.size() > kMostReaders) {
      readers_.pop_back();
    }
  }
  return readers_.front();
}

const ShownRun* RunWatch::find(const Snapshot& snapshot, const std::string& key) {
  const auto run = std::find_if(snapshot.runs.begin(), snapshot.runs.end(), [&](const ShownRun& one) { return one.key == key; });
  return run != snapshot.runs.end() ? &*run : nullptr;
}

std::optional<fs::path> RunWatch::folder(const std::string& key) {
  const std::shared_ptr<const Snapshot> snapshot = now();
  const ShownRun* const run = find(*snapshot, key);
  return run != nullptr ? std::optional(run->summary.folder) : std::nullopt;
}

std::optional<std::string> RunWatch::details(const std::string& key) {
  const std::shared_ptr<const Snapshot> snapshot = now();
  const ShownRun* const run = find(*snapshot, key);
  if (run == nullptr) {
    return std::nullopt;
  }
  const std::shared_ptr<Reader> own = reader(*run);
  const std::lock_guard lock(own->mutex);
  JsonWriter json;
  json.begin_object();
  write_details(json, *run, own->rows, kBuckets);
  write_numbers(json, own->rows.names());
  json.end_object();
  return json.take();
}

std::optional<std::string> RunWatch::stretch(const std::string& key, const Stretch& stretch) {
  const std::shared_ptr<const Snapshot> snapshot = now();
  const ShownRun* const run = find(*snapshot, key);
  if (run == nullptr) {
    return std::nullopt;
  }
  const std::shared_ptr<Reader> own = reader(*run);
  const std::lock_guard lock(own->mutex);
  own->rows.read();
  JsonWriter json;
  json.begin_object();
  write_series(json, own->rows, kBuckets, stretch);
  json.end_object();
  return json.take();
}

}  // namespace kf::report
