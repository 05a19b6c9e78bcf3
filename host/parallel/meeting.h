#pragma once
// Workers that train apart meet now and then, as many as are there: one that dies stops no other, and one that comes back is taken in.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/group.h"
#include "parallel/meeting_place.h"
#include "parallel/worker_place.h"
#include "parallel/world.h"

namespace kf {

struct MeetingRules {
  std::string job;         // must be the same for all
  std::int64_t least = 1;  // workers that must be there
  std::chrono::milliseconds patience{std::chrono::minutes(10)};
};

/// Each worker is a world of its own, and these are the only calls between them. They are calls of all ranks of a worker; those that have
/// the same place in theirs form a group. What is done at a meeting counts for all who were there or for none: where one of them is lost
/// in the middle, the others do it once more without it.
///
/// A worker that trains waits for those that trained with it as long as their processes live, at most the `patience` of the rules; who is
/// left out ends, and comes back as one that has just been started. That one waits for a meeting of those that train, and takes its state
/// from one of them. Workers that have all just been started wait for each other, at most `patience`, and those with fewer exchanges
/// behind them take the state of one that has most.
class Meeting {
 public:
  /// `own`: the ranks of this worker; outlives it. Throws Code::config for another job than that of the others, and Code::communication.
  Meeting(const WorkerPlace& place, const MeetingRules& rules, const World& own);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// State on its way: rank 0 of the group has it, the others take it.
  using Carry = std::function<void(Group& group)>;

  /// Before the first update of this process. Gives the step to go on from: that of another worker where it has taken its state, by `take`.
  /// Throws Code::communication where there are too few.
  std::int64_t join(const WorkerProgress& mine, const Carry& give, const Carry& take);
  /// Behind an update: `exchange` may be called more than once, and must leave everything as it is until this returns; true where what
  /// it did counts. False where the run ends here: `ended`, or by a signal. Throws Code::communication where the others have gone on
  /// without this worker.
  bool hold(const WorkerProgress& mine, const std::function<void(Group& there)>& exchange);
  /// Of the exchange that `hold` was true of: WorkerProgress::mark.
  std::int64_t mark() const;
  /// Behind a meeting that was held, and what was done there: to those that are behind.
  void hand_on(const Carry& give);

  /// The run is complete here: who comes back later has nothing left to do.
  void finish(std::int64_t step);

  /// Workers that were at the last meeting, and those that took their state from them.
  std::int64_t present() const { return static_cast<std::int64_t>(present_.size()); }
  /// Why the run ends; empty while it goes on.
  const std::string& ended() const { return ended_; }

 private:
  class Wait;

  Attendance meet(const WorkerProgress& mine, bool trains);
  std::string seen(const std::function<std::optional<std::string>()>& look) const;
  bool counts(std::int64_t number, const std::string& failure);
  std::shared_ptr<Group> group_of(const char* what, std::int64_t number, const std::vector<Attendant>& members);
  std::string exchange_with(const Attendance& there, const std::function<void(Group& there)>& exchange);
  bool await_outcome(const Attendance& there) const;
  void note(const Attendance& there);
  std::string too_few(const Attendance& there) const;

  WorkerPlace place_;
  MeetingRules rules_;
  const World& own_;
  std::unique_ptr<MeetingPlace> board_;  // of the leader
  Attendant self_;
  Attendance last_;                 // meeting that this worker was at
  std::vector<Attendant> present_;  // at the last one that was held
  std::vector<Attendant> grouped_;  // members of `group_`
  std::shared_ptr<Group> group_;    // of the last exchange; stays while they are the same
  std::string ended_;
};

}  // namespace kf
