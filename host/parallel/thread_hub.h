#pragma once
// Where the threads of run_ranks meet. One mutex guards everything in here; nothing else is shared between ranks but tensors.
//
// Who comes last to a call carries it out for all ranks, under that mutex. Every rank comes to it through the mutex before and leaves
// through it afterwards, and between the two touches none of the call's tensors (group.h): so no tensor is used by two threads at once, the
// order of arithmetic is that of ranks, and timing decides nothing.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/call.h"

namespace kf {

/// What ranks wait for.
struct HubEvent {
  bool done = false;  // guarded by the hub's mutex
};

/// A rank's own wait for it.
struct Ticket {
  std::shared_ptr<HubEvent> event;
  std::string what;  // "sum of float32 [3] in group dp_shard"
};

class ThreadHub {
 public:
  explicit ThreadHub(std::int64_t ranks) : states_(static_cast<std::size_t>(ranks)) {}

  /// The next call of the group `key`. `ranks`: the group's, in the world; `rank`: who calls, in the group.
  Ticket call(const Group& group, const std::string& key, Call call);
  Ticket send(const Group& group, const std::string& key, const at::Tensor& t, std::int64_t to);
  Ticket receive(const Group& group, const std::string& key, const at::Tensor& t, std::int64_t from);
  /// Waits as `rank` of the world. Throws when another rank has ended with an error, calls do not match, or nobody is left to come.
  void wait(std::int64_t rank, const Ticket& ticket);

  /// `rank` (of the world) has thrown: all waits throw.
  void ended_with(std::int64_t rank, std::string_view message) noexcept;
  /// `rank` has returned.
  void returned(std::int64_t rank);

  /// What ended the run, else nothing.
  std::optional<std::string> fault();
  /// Whether `rank` has been told of an end that others caused: what it throws from then on is a consequence.
  bool was_told(std::int64_t rank);

 private:
  struct Round : HubEvent {
    std::vector<std::optional<Call>> calls;  // by rank of the group
    std::size_t come = 0;
  };
  struct Letter : HubEvent {
    at::Tensor tensor;
    std::string what;
  };
  struct Lane {  // from one rank to another
    std::deque<std::shared_ptr<Letter>> sent, wanted;
  };
  struct Meeting {
    std::vector<std::int64_t> begun;  // calls so far, by rank of the group
    std::map<std::int64_t, std::shared_ptr<Round>> rounds;
    std::map<std::pair<std::int64_t, std::int64_t>, Lane> lanes;
  };
  struct State {
    const Ticket* waits_for = nullptr;
    bool returned = false, told = false;
  };

  Ticket post(const Group& group, Lane& lane, const std::shared_ptr<Letter>& letter, bool sends);
  bool carry_out(const Group& group, const Round& round);
  void check_someone_comes();
  void end_all(const std::string& message);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Meeting> meetings_;
  std::vector<State> states_;         // by rank of the world
  std::optional<std::string> fault_;  // why all waits throw: the first that happened
};

}  // namespace kf
