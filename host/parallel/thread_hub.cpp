#include "parallel/thread_hub.h"

#include "core/error.h"
#include "parallel/group.h"
#include "parallel/reduce.h"

namespace kf {
namespace {

// The calls of all ranks of a group, by rank.
using Calls = std::vector<std::optional<Call>>;

std::vector<at::Tensor> all_of(const Calls& calls, at::Tensor Call::*member) {
  std::vector<at::Tensor> tensors;
  for (const auto& call : calls) {
    tensors.push_back((*call).*member);
  }
  return tensors;
}

void reduce_calls(const Calls& calls) {
  const std::vector<at::Tensor> tensors = all_of(calls, &Call::to);
  const at::Tensor result = calls.front()->op == Op::sum ? sum_in_order(tensors) : largest_of(tensors);
  for (const at::Tensor& t : tensors) {
    copy_unless_same(t, result);
  }
}

void gather_calls(const Calls& calls) {
  for (const auto& call : calls) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      copy_unless_same(rows_of(call->to, call->rows, static_cast<std::int64_t>(rank)), calls[rank]->from);
    }
  }
}

void scatter_calls(const Calls& calls) {
  const at::Tensor sum = sum_in_order(all_of(calls, &Call::from));  // whole first: parts may be places in it
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    copy_unless_same(calls[rank]->to, rows_of(sum, calls[rank]->rows, static_cast<std::int64_t>(rank)));
  }
}

void exchange_calls(const Calls& calls) {
  const auto size = static_cast<std::int64_t>(calls.size());
  for (std::int64_t to = 0; to < size; ++to) {
    for (std::int64_t from = 0; from < size; ++from) {
      const Call& receiver = *calls[static_cast<std::size_t>(to)];
      const Call& sender = *calls[static_cast<std::size_t>(from)];
      copy_unless_same(rows_of(receiver.to, receiver.received, from), rows_of(sender.from, sender.sent, to));
    }
  }
}

// What a call does, on all ranks at once.
void carry_out_calls(const Calls& calls) {
  switch (calls.front()->op) {
    case Op::sum:
    case Op::largest: return reduce_calls(calls);
    case Op::broadcast:
      for (const auto& call : calls) {
        copy_unless_same(call->to, calls[static_cast<std::size_t>(call->root)]->to);
      }
      return;
    case Op::gather: return gather_calls(calls);
    case Op::scatter_sum: return scatter_calls(calls);
    case Op::exchange: return exchange_calls(calls);
    case Op::barrier: return;
  }
}

// Empty where all calls are one, else who does what. `ranks`: the world's names of them.
std::string mismatch_of(const Calls& calls, const std::vector<std::int64_t>& ranks) {
  const std::string first = calls.front()->text();
  for (std::size_t i = 1; i < calls.size(); ++i) {
    if (const std::string text = calls[i]->text(); text != first) {
      return format("rank {} calls {}, rank {} calls {}", ranks[0], first, ranks[i], text);
    }
  }
  if (calls.front()->op != Op::exchange) {
    return {};
  }
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      const std::int64_t sent = calls[from]->sent[to], received = calls[to]->received[from];
      if (sent != received) {
        return format("{}: rank {} sends {} rows to rank {}, which receives {}", first, ranks[from], sent, ranks[to], received);
      }
    }
  }
  return {};
}

}  // namespace

void ThreadHub::end_all(const std::string& message) {
  if (!fault_) {
    fault_ = message;
  }
  changed_.notify_all();
}

Ticket ThreadHub::call(const Group& group, const std::string& key, Call call) {
  const std::string what = format("{} in group {}", call.text(), group.name());
  const std::lock_guard lock(mutex_);
  if (fault_) {
    return {std::make_shared<HubEvent>(), what};  // never done: its wait throws
  }
  const auto rank = static_cast<std::size_t>(group.rank());
  Meeting& meeting = meetings_[key];
  const auto size = static_cast<std::size_t>(group.size());
  meeting.begun.resize(size);
  const std::int64_t number = meeting.begun[rank]++;
  std::shared_ptr<Round>& slot = meeting.rounds[number];
  if (slot == nullptr) {
    slot = std::make_shared<Round>();
    slot->calls.resize(size);
  }
  const std::shared_ptr<Round> round = slot;
  round->calls[rank] = std::move(call);
  if (++round->come == size) {
    meeting.rounds.erase(number);
    round->done = carry_out(group, *round);
    round->calls.clear();
    changed_.notify_all();
  }
  return {round, what};
}

// Whether the calls match; if not, all waits throw.
bool ThreadHub::carry_out(const Group& group, const Round& round) {
  const std::string mismatch = mismatch_of(round.calls, group.ranks());
  if (!mismatch.empty()) {
    end_all(format("calls in group {} do not match: {}", group.name(), mismatch));
    return false;
  }
  carry_out_calls(round.calls);
  return true;
}

Ticket ThreadHub::post(const Group& group, Lane& lane, const std::shared_ptr<Letter>& letter, bool sends) {
  Ticket ticket{letter, letter->what};
  if (fault_) {
    return ticket;
  }
  (sends ? lane.sent : lane.wanted).push_back(letter);
  if (lane.sent.empty() || lane.wanted.empty()) {
    return ticket;
  }
  const std::shared_ptr<Letter> from = lane.sent.front(), to = lane.wanted.front();
  lane.sent.pop_front();
  lane.wanted.pop_front();
  if (describe(from->tensor) != describe(to->tensor)) {
    end_all(format("calls in group {} do not match: {}, but {}", group.name(), from->what, to->what));
    return ticket;
  }
  copy_unless_same(to->tensor, from->tensor);
  from->done = to->done = true;
  changed_.notify_all();
  return ticket;
}

Ticket ThreadHub::send(const Group& group, const std::string& key, const at::Tensor& t, std::int64_t to) {
  const std::lock_guard lock(mutex_);
  const auto letter = std::make_shared<Letter>();
  const auto& ranks = group.ranks();
  letter->what = format("send of {} from rank {} to rank {}", describe(t), ranks[static_cast<std::size_t>(group.rank())],
                        ranks[static_cast<std::size_t>(to)]);
  letter->tensor = t;
  return post(group, meetings_[key].lanes[{group.rank(), to}], letter, true);
}

Ticket ThreadHub::receive(const Group& group, const std::string& key, const at::Tensor& t, std::int64_t from) {
  const std::lock_guard lock(mutex_);
  const auto letter = std::make_shared<Letter>();
  const auto& ranks = group.ranks();
  letter->what = format("receive of {} by rank {} from rank {}", describe(t), ranks[static_cast<std::size_t>(group.rank())],
                        ranks[static_cast<std::size_t>(from)]);
  letter->tensor = t;
  return post(group, meetings_[key].lanes[{from, group.rank()}], letter, false);
}

void ThreadHub::wait(std::int64_t rank, const Ticket& ticket) {
  std::unique_lock lock(mutex_);
  State& state = states_[static_cast<std::size_t>(rank)];
  state.waits_for = &ticket;
  check_someone_comes();
  changed_.wait(lock, [&] { return ticket.event->done || fault_; });
  state.waits_for = nullptr;
  if (!ticket.event->done) {
    state.told = true;
    throw Error(Code::communication, *fault_).context(format("while rank {} was in {}", rank, ticket.what));
  }
}

// A fault when every rank waits for something that is not there or has returned: nobody could change that.
void ThreadHub::check_someone_comes() {
  std::vector<std::string> what;
  bool waits = false;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    if (state.returned) {
      what.push_back(format("rank {} has returned", rank));
    } else if (state.waits_for != nullptr && !state.waits_for->event->done) {
      what.push_back(format("rank {} is in {}", rank, state.waits_for->what));
      waits = true;
    } else {
      return;
    }
  }
  if (waits) {
    end_all(format("all ranks wait for each other: {}", join(what, ", ")));
  }
}

void ThreadHub::ended_with(std::int64_t rank, std::string_view message) noexcept {
  const std::lock_guard lock(mutex_);
  end_all(format("rank {}: {}", rank, message));
}

void ThreadHub::returned(std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  states_[static_cast<std::size_t>(rank)].returned = true;
  check_someone_comes();
}

std::optional<std::string> ThreadHub::fault() {
  const std::lock_guard lock(mutex_);
  return fault_;
}

bool ThreadHub::was_told(std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  return states_[static_cast<std::size_t>(rank)].told;
}

}  // namespace kf
