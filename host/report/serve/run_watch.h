#pragma once
// The runs below a folder while they grow.

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"
#include "report/page/run_data.h"
#include "report/page/series_data.h"
#include "report/read/row_file.h"

namespace kf::report {

/// May be asked by several threads.
class RunWatch {
 public:
  explicit RunWatch(fs::path root) : root_(std::move(root)) {}

  /// The runs at one moment.
  struct Snapshot {
    std::uint64_t number = 0;  // of another content another one
    std::string list;          // JSON, one object a run, as `write_summary` writes it
    std::vector<ShownRun> runs;
  };
  /// Not older than a second, or than ten times what looking takes. Never throws: what cannot be looked at has no runs.
  std::shared_ptr<const Snapshot> now();

  /// Where the run with this key lies. Nothing where there is no such run.
  std::optional<fs::path> folder(const std::string& key);
  /// JSON: everything of the run with this key, and "numbers". Nothing where there is no such run.
  std::optional<std::string> details(const std::string& key);
  /// JSON: "series" of the run in a stretch of its steps, as fine as they are where they are few. Nothing likewise.
  std::optional<std::string> stretch(const std::string& key, const Stretch& stretch);

 private:
  using Clock = std::chrono::steady_clock;
  /// The rows of a run that was asked for: what has come since is all that is read of it the next time.
  struct Reader {
    std::string key;
    fs::path folder;
    std::mutex mutex;
    RowFile rows;
    Reader(std::string of, const fs::path& in) : key(std::move(of)), folder(in), rows(in / "metrics.jsonl") {}
  };
  /// The run with this key in `snapshot`; null where there is none.
  static const ShownRun* find(const Snapshot& snapshot, const std::string& key);
  std::shared_ptr<Reader> reader(const ShownRun& run);
  std::shared_ptr<const Snapshot> look() const;

  const fs::path root_;
  std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_;
  Clock::time_point due_;
  std::list<std::shared_ptr<Reader>> readers_;  // the last one that was asked for first
};

}  // namespace kf::report
