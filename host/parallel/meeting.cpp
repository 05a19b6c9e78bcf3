#include "parallel/meeting.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "core/stop.h"
#include "parallel/c10d_group.h"
#include "parallel/own_address.h"
#include "parallel/rendezvous.h"
#include "parallel/words.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;

/// Those of `before` that are not in `now`.
std::vector<Attendant> without(const std::vector<Attendant>& before, const std::vector<Attendant>& now) {
  std::vector<Attendant> out;
  std::copy_if(before.begin(), before.end(), std::back_inserter(out), [&](const Attendant& who) { return !is_among(who, now); });
  return out;
}

}  // namespace

/// One worker's wait for a meeting, in its leader.
class Meeting::Wait {
 public:
  Wait(MeetingPlace& board, const WorkerPlace& place, const MeetingRules& rules, std::vector<Attendant> expected,
       const WorkerProgress& mine, bool trains)
      : board_(board), place_(place), rules_(rules), expected_(std::move(expected)), mine_(mine), trains_(trains) {}

  /// To meeting `number`, or, for a worker that has just been started, to the first one behind it that it is in time for.
  void come_to(std::int64_t number) {
    number_ = number;
    since_ = Clock::now();
    board_.arrive(number_, trains_, mine_);
  }

  /// Who is there; nothing as long as that is not settled.
  std::optional<Attendance> look() {
    if (std::optional<Attendance> held = board_.attendance(number_)) {
      if (trains_ || is_among(board_.self(), held->all())) {
        return held;
      }
      come_to(number_ + 1);  // it was too late for that one
    } else if (const std::int64_t last = board_.last(); last > number_) {
      KF_CHECK(!trains_, Code::communication,
               "step {}: the other workers heard nothing of worker {} and have gone on; started again, it takes their state "
               "(--max-restarts)",
               mine_.step, place_.worker);
      come_to(last + 1);
    } else if (const std::optional<Attendance> mine = decision()) {
      board_.write(*mine);  // the next look sees what holds
    }
    return std::nullopt;
  }

 private:
  /// What this worker would write down by now; nothing where it is to wait on.
  std::optional<Attendance> decision() const {
    const std::vector<Arrival> arrived = board_.arrivals(number_, place_.workers);
    const bool at_work = std::any_of(arrived.begin(), arrived.end(), [](const Arrival& one) { return one.trains; });
    if (at_work != trains_) {
      return std::nullopt;  // those that train say who is there
    }
    if (StopSignals::requested()) {
      return Attendance{number_, Attendance::Kind::left, mine_.step, {board_.self()}, {}};
    }
    const bool all = static_cast<std::int64_t>(arrived.size()) == place_.workers, late = Clock::now() - since_ >= rules_.patience;
    const bool enough = static_cast<std::int64_t>(arrived.size()) >= rules_.least;
    const bool awaits = awaits_living(arrived);
    if (const std::optional<std::int64_t> end = trains_ || awaits ? std::nullopt : board_.finished()) {
      fail(Code::other,
           "the other workers have completed the run, {} steps, before worker {} came back; a new run needs a new place (--meet)", *end,
           place_.worker);
    }
    if (!all && (awaits ? !(trains_ && late) : !late && !(trains_ && enough))) {
      return std::nullopt;
    }
    return of(arrived, enough);
  }

  /// Whether somebody who may still come lives: one that trained with this one, and for one that does not train anybody.
  bool awaits_living(const std::vector<Arrival>& arrived) const {
    for (std::int64_t worker = 0; worker < place_.workers; ++worker) {
      const bool is_here = std::any_of(arrived.begin(), arrived.end(), [&](const Arrival& one) { return one.who.worker == worker; });
      if (is_here) {
        continue;
      }
      const std::optional<Attendant> living = board_.living(worker);
      if (living && (!trains_ || is_among(*living, expected_))) {
        return true;
      }
    }
    return false;
  }

  /// Where workers train, they are ahead of all that have just been started; else those are who have most exchanges behind them.
  Attendance of(const std::vector<Arrival>& arrived, bool enough) const {
    const auto rank = [this](const Arrival& one) {
      return std::tuple(one.trains == trains_, trains_ ? one.progress.step : one.progress.exchanges, one.progress.step);
    };
    const Arrival& first =
        *std::max_element(arrived.begin(), arrived.end(), [&](const Arrival& a, const Arrival& b) { return rank(a) < rank(b); });
    Attendance out;
    out.number = number_;
    out.kind = enough ? Attendance::Kind::held : Attendance::Kind::few;
    for (const Arrival& one : arrived) {
      const bool same = one.progress.exchanges == first.progress.exchanges && one.progress.mark == first.progress.mark;
      const bool there = one.trains == trains_ && same && (!trains_ || one.progress.step == first.progress.step);
      out.step = there && out.there.empty() ? one.progress.step : out.step;
      (there ? out.there : out.behind).push_back(one.who);
    }
    return out;
  }

  MeetingPlace& board_;
  const WorkerPlace& place_;
  const MeetingRules& rules_;
  std::vector<Attendant> expected_;
  WorkerProgress mine_;
  bool trains_;
  std::int64_t number_ = 0;
  Clock::time_point since_;
};

Meeting::Meeting(const WorkerPlace& place, const MeetingRules& rules, const World& own) : place_(place), rules_(rules), own_(own) {
  std::string self;
  if (own.leads()) {
    board_ = open_meeting_place(place.where, place.worker);
    self = board_->self().process;
    KF_CHECK(board_->job(rules.job) == rules.job, Code::config,
             "worker {} has another job, or is another program, than the worker that came to {} first: all must be started alike. After a "
             "change that is meant, name a new place (--meet)",
             place.worker, place.where);
  }
  self_ = {place.worker, own.size() == 1 ? self : own.all().tell(self).front()};
}

Meeting::~Meeting() = default;

/// What the leader's `look` gives, once it gives something. The other ranks hear of every look, so that they never wait for long.
std::string Meeting::seen(const std::function<std::optional<std::string>()>& look) const {
  for (Pauses pauses;; pauses.wait()) {
    const std::optional<std::string> mine = own_.leads() ? look() : std::nullopt;
    const std::string told = mine ? "+" + *mine : "";
    const std::string leaders = own_.size() == 1 ? told : own_.all().tell(told).front();
    if (!leaders.empty()) {
      return leaders.substr(1);
    }
  }
}

Attendance Meeting::meet(const WorkerProgress& mine, bool trains) {
  std::optional<Wait> wait;
  if (own_.leads()) {
    wait.emplace(*board_, place_, rules_, present_, mine, trains);
    wait->come_to(trains ? last_.number + 1 : board_->last() + 1);
  }
  last_ = attendance_of(seen([&]() -> std::optional<std::string> {
                          const std::optional<Attendance> held = wait->look();
                          return held ? std::optional(text_of(*held)) : std::nullopt;
                        }),
                        "a meeting");
  return last_;
}

/// The group of this rank and those at the same place in other workers. Throws Code::communication.
std::shared_ptr<Group> Meeting::group_of(const char* what, std::int64_t number, const std::vector<Attendant>& members) {
  const std::string mine = own_.leads() ? board_->await_ready(what, number, members) : "";
  const std::string lost = own_.size() == 1 ? mine : own_.all().tell(mine).front();
  KF_CHECK(lost.empty(), Code::communication, "{}", lost);
  Rendezvous rendezvous = meeting_rendezvous(place_.where, format("{}-{}-{}", what, number, own_.rank()));
  rendezvous.rank = std::find(members.begin(), members.end(), self_) - members.begin();
  rendezvous.world = static_cast<std::int64_t>(members.size());
  rendezvous.timeout = rules_.patience;
  rendezvous.address = place_.here ? "127.0.0.1" : own_address(is_meeting_store(place_.where) ? host_of(place_.where) : host_name());
  return join_processes(rendezvous);
}

/// Why it failed here; "" where it did not.
std::string Meeting::exchange_with(const Attendance& there, const std::function<void(Group& there)>& exchange) try {
  if (group_ == nullptr || grouped_ != there.there) {
    group_.reset();
    group_ = group_of("group", there.number, there.there);
    grouped_ = there.there;
  }
  exchange(*group_);
  return "";
} catch (const Error& error) {
  if (error.code() != Code::communication) {
    throw;
  }
  group_.reset();
  return first_line(error.what());
}

/// Whether what was done at the meeting counts: every rank of some worker has it, and nobody has said before that it failed.
bool Meeting::counts(std::int64_t number, const std::string& failure) {
  const std::vector<std::string> failures = own_.size() == 1 ? std::vector<std::string>{failure} : own_.all().tell(failure);
  const auto failed = std::find_if(failures.begin(), failures.end(), [](const std::string& one) { return !one.empty(); });
  const bool here = failed == failures.end();
  const bool mine = own_.leads() && board_->settle(number, here);
  const bool done = own_.size() == 1 ? mine : own_.all().tell(mine ? "yes" : "no").front() == "yes";
  KF_CHECK(here || !done, Code::communication,
           "the other workers have exchanged what they learned, and worker {} could not: {}. Started again, it takes their state "
           "(--max-restarts)",
           place_.worker, *failed);
  if (!done) {
    group_.reset();
    log::warn("an exchange of {} failed ({}); those that are there try again", names_of(grouped_),
              here ? "another worker saw it" : *failed);
  }
  return done;
}

/// Who has gone, and who has come.
void Meeting::note(const Attendance& there) {
  const std::vector<Attendant> now = there.all();
  if (const std::vector<Attendant> gone = without(present_, now); !gone.empty()) {
    log::warn("step {}: {} of {} is gone; {} of them go on", there.step, names_of(gone), place_.workers, now.size());
  }
  if (!present_.empty() && !there.behind.empty()) {
    log::info("step {}: {} came back, with the state of worker {}", there.step, names_of(there.behind), there.there.front().worker);
  }
  present_ = now;
}

std::string Meeting::too_few(const Attendance& there) const {
  return format(
      "step {}: {} of {} workers are there ({}), fewer than diloco.min_workers ({}); started again, they go on from their checkpoints",
      there.step, there.all().size(), place_.workers, names_of(there.all()), rules_.least);
}

/// The worker that is first hands its state on. One that does not take it is missed at the next meeting.
void Meeting::hand_on(const Carry& give) {
  const Attendance& there = last_;
  if (there.behind.empty() || there.there.front() != self_) {
    return;
  }
  std::vector<Attendant> members{self_};
  members.insert(members.end(), there.behind.begin(), there.behind.end());
  try {
    give(*group_of("state", there.number, members));
  } catch (const Error& error) {
    if (error.code() != Code::communication) {
      throw;
    }
    log::warn("step {}: {} did not take the state of worker {}: {}", there.step, names_of(there.behind), self_.worker,
              first_line(error.what()));
  }
}

/// For one that is behind: whether the meeting came to its end.
bool Meeting::await_outcome(const Attendance& there) const {
  return seen([&]() -> std::optional<std::string> {
           if (const std::optional<bool> done = board_->done(there.number)) {
             return *done ? "yes" : "no";
           }
           const bool alive =
               std::any_of(there.there.begin(), there.there.end(), [&](const Attendant& who) { return board_->living(who.worker) == who; });
           return alive ? std::nullopt : std::optional<std::string>("no");
         }) == "yes";
}

std::int64_t Meeting::join(const WorkerProgress& mine, const Carry& give, const Carry& take) {
  log::info("worker {} of {} waits for the others in {}", place_.worker, place_.workers, place_.where);
  for (;;) {
    const Attendance there = meet(mine, /*trains=*/false);
    KF_CHECK(there.kind != Attendance::Kind::few, Code::communication, "{}", too_few(there));
    if (there.kind == Attendance::Kind::left) {
      continue;  // another one, which has not begun
    }
    if (is_among(self_, there.there)) {
      if (!counts(there.number, "")) {
        continue;
      }
      note(there);
      hand_on(give);
      return mine.step;
    }
    if (await_outcome(there)) {
      std::vector<Attendant> members{there.there.front()};
      members.insert(members.end(), there.behind.begin(), there.behind.end());
      take(*group_of("state", there.number, members));
      present_ = there.all();
      log::info("worker {} goes on at step {}, with the state of worker {}", place_.worker, there.step, there.there.front().worker);
      return there.step;
    }
  }
}

/// Processes of all who were there, and when they were started, make it one of its own.
std::int64_t Meeting::mark() const { return static_cast<std::int64_t>(hash64(text_of(last_)) >> 1); }

void Meeting::finish(std::int64_t step) {
  if (board_) {
    board_->finish(step);
  }
}

bool Meeting::hold(const WorkerProgress& mine, const std::function<void(Group& there)>& exchange) {
  for (;;) {
    const Attendance there = meet(mine, /*trains=*/true);
    if (there.kind == Attendance::Kind::few) {
      ended_ = too_few(there);
      return false;
    }
    if (there.kind == Attendance::Kind::left) {
      if (is_among(self_, there.there)) {
        return false;
      }
      continue;
    }
    KF_CHECK(is_among(self_, there.there), Code::communication,
             "step {}: the other workers have gone on without worker {}, which {}; started again, it takes their state (--max-restarts)",
             mine.step, self_.worker, is_among(self_, there.behind) ? "is behind them" : "did not come in time");
    if (counts(there.number, exchange_with(there, exchange))) {
      note(there);
      return true;
    }
  }
}

}  // namespace kf
