#pragma once
// Where workers that come and go write down who is there: short texts by name, which all of them see.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/rendezvous.h"

namespace kf {

/// Between two looks: longer and longer, up to a quarter of a second.
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

/// Texts: "job", what all workers train; "worker-K", which process is worker K; "come-N-K", its arrival at meeting N; "held-N", the
/// attendance; "ready-N-...", that it is about to connect to others; "done-N", whether what was done there counts; "end", the step at which
/// the run is complete. Of two that write "job", "held-N" or "done-N" the first one holds for all.
class MeetingPlace {
 public:
  MeetingPlace() = default;
  virtual ~MeetingPlace() = default;
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

  const Attendant& self() const { return self_; }
  /// What the first worker said of its job.
  std::string job(const std::string& mine) { return first("job", mine); }
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

 protected:
  /// This process is `worker`, under a name that no other process has.
  explicit MeetingPlace(std::int64_t worker);

  virtual std::optional<std::string> read(const std::string& name) const = 0;
  virtual void put(const std::string& name, const std::string& text) = 0;
  /// What the first one who wrote it said.
  virtual std::string first(const std::string& name, const std::string& mine) = 0;
  virtual std::vector<std::string> names() const = 0;
  virtual void remove(const std::vector<std::string>& names) = 0;
  /// The name of the process that is another worker, where it lives.
  virtual std::optional<std::string> process_of(std::int64_t worker) const = 0;

 private:
  void forget(std::int64_t number);

  Attendant self_;
};

/// Whether `where` is HOST:PORT; else it is a folder ("./a:1" is one).
bool is_meeting_store(const std::string& where);
/// The folder, or the store that somebody keeps at HOST:PORT, as `worker`. Throws Code::communication where another process is that worker,
/// the disk cannot do what is needed, or nobody keeps the store.
std::unique_ptr<MeetingPlace> open_meeting_place(const std::string& where, std::int64_t worker);
/// Where the ranks of several workers connect that have agreed on `name`; the rank and the number of them are the caller's to set.
Rendezvous meeting_rendezvous(const std::string& where, const std::string& name);

}  // namespace kf
