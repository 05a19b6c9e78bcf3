#pragma once
// A folder in which workers that come and go write down who is there: small files, each whole from its beginning on.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf {

/// Between two looks at the folder: longer and longer, up to a quarter of a second.
class Pauses {
 public:
  void wait();

 private:
  std::chrono::milliseconds pause_{5};
};

/// A process of a worker: every start of the worker is another one.
struct Attendant {
  std::int64_t worker = 0;
  std::string process;
  bool operator==(const Attendant&) const = default;
};

/// How far a worker has come. Those with the same exchanges behind them go on from the same weights, whatever their steps since then.
struct WorkerProgress {
  std::int64_t step = 0;       // completed updates
  std::int64_t exchanges = 0;  // that it took part in, or took over with the state of another worker
  std::int64_t mark = 0;       // of the last one: another one for every exchange
};

/// A worker that has come to a meeting.
struct Arrival {
  Attendant who;
  bool trains = false;  // since a meeting before; else it has just been started
  WorkerProgress progress;
};

/// What the first one wrote down who saw everybody there. It holds for all.
struct Attendance {
  enum class Kind {
    held,  // the workers that are `there` do what they have come for
    few,   // they are too few, and the run ends
    left   // the one that is `there` leaves, and the others meet again
  };
  std::int64_t number = 0;
  Kind kind = Kind::held;
  std::int64_t step = 0;          // of the first one of `there`
  std::vector<Attendant> there;   // with the same exchanges behind them, ascending
  std::vector<Attendant> behind;  // take their state from the first one of `there`

  std::vector<Attendant> all() const;
};

std::string text_of(const Attendance& attendance);
/// The reverse. `name`: for messages. Throws Code::communication.
Attendance attendance_of(const std::string& text, const std::string& name);

/// "worker 1", "workers 0, 2".
std::string names_of(const std::vector<Attendant>& workers);
std::string names_of(const std::vector<std::int64_t>& workers);
bool is_among(const Attendant& who, const std::vector<Attendant>& workers);

/// Files: "job", what all workers train; "worker-K", which worker K's process holds locked while it lives, so that its end is seen at once,
/// whatever ended it; "come-N-K", its arrival at meeting N; "held-N", the attendance; "ready-N-...", that it is about to connect to others;
/// "done-N", whether what was done there counts; "end", the step at which the run is complete. Of two that write "job", "held-N" or
/// "done-N" the first one holds for all. Any disk that all see will do that has locks and hard links.
class MeetingFolder {
 public:
  /// This process is `worker`. Makes the folder where it is not there. Throws Code::communication where another process is that worker, or
  /// the disk cannot do what is needed.
  MeetingFolder(fs::path folder, std::int64_t worker);

  const fs::path& path() const { return folder_; }
  const Attendant& self() const { return self_; }
  /// What the first worker said of its job.
  std::string job(const std::string& mine);
  /// Which process is that worker now; nothing where none lives.
  std::optional<Attendant> living(std::int64_t worker) const;

  /// The number of the last meeting that is written down; 0 for none.
  std::int64_t last() const;
  void arrive(std::int64_t number, bool trains, const WorkerProgress& progress);
  /// Those of `workers` workers that have come and live.
  std::vector<Arrival> arrivals(std::int64_t number, std::int64_t workers) const;
  std::optional<Attendance> attendance(std::int64_t number) const;
  /// What holds.
  Attendance write(const Attendance& mine);
  /// Waits for `members` of meeting `number` to call this, too. "" once they have; else who does not live any more.
  std::string await_ready(const std::string& what, std::int64_t number, const std::vector<Attendant>& members);
  std::optional<bool> done(std::int64_t number) const;
  bool settle(std::int64_t number, bool mine);
  /// A worker has come to the end of the run, with so many steps.
  void finish(std::int64_t step);
  std::optional<std::int64_t> finished() const;

 private:
  fs::path file(const std::string& name) const { return folder_ / name; }
  std::optional<std::string> read(const std::string& name) const;
  std::string first(const std::string& name, const std::string& mine);
  void forget(std::int64_t number) const;

  fs::path folder_;
  Attendant self_;
  Descriptor lock_;
};

}  // namespace kf
