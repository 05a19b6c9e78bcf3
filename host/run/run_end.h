#pragma once
// How a run ends stands in its log, in its record and on the terminal, whichever way that is.

#include <cstdint>
#include <optional>
#include <string>

#include "run/run.h"
#include "run/run_record.h"

namespace kf {

class RunEnd {
 public:
  /// The run's folder is there: what it is started with is written down, in log.txt and run.json.
  void open(const fs::path& dir, const RunStart& start);
  /// Of a rank that does not lead: log.rank-N.txt alone.
  void open_log(const fs::path& dir, std::int64_t rank);
  /// Of the run, once it is open; "" on ranks that do not lead.
  std::string id() const { return record_ ? record_->id() : ""; }
  /// Adds to the record of this start, where there is one.
  void note(const std::string& key, config::Node value);
  void well(const RunResult& result);
  void failed(const std::string& message);
  /// How far the run has come, for an end by an error.
  void reached(std::int64_t step) { steps_ = step; }

 private:
  void close_log(const std::string& status);

  std::optional<RunRecord> record_;
  bool logs_ = false;
  std::int64_t steps_ = 0;
};

/// The closing line: done, or stopped and how to go on. A rank that does not lead says nothing, but its exit status will tell of a signal.
void say_end(const RunResult& result, const RunRequest& request, bool leads);

}  // namespace kf
