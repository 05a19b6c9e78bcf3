#include "parallel/meeting_store.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "parallel/no_pipe_signal.h"
#include "parallel/quiet_torch.h"
#include "parallel/tcp_store.h"
#include "parallel/words.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kBeat{1};
// Who keeps the store may be about to start.
constexpr std::chrono::minutes kUntilItIsKept{5};

std::string key_of(const std::string& name) { return kMeetingPrefix + name; }
std::string name_of(std::int64_t worker) { return format("worker-{}", worker); }
std::string process_in(const std::string& text) { return text.substr(0, text.find(' ')); }

TcpStoreOptions client(std::int64_t worker) {
  return {.who = format("worker {}", worker), .keeper = "worker 0", .option = "--meet", .timeout = kUntilItIsKept};
}

}  // namespace

struct MeetingStore::Store {
  c10::intrusive_ptr<c10d::Store> all;
};

/// A call of the store, whose failure is the end of the meeting.
template <class Ask>
auto MeetingStore::ask(const Ask& ask) const {
  try {
    const NoPipeSignal no_signal;
    const QuietTorch quiet(QuietTorch::kFatal);
    return ask(*store_->all);
  } catch (const std::exception& e) {
    fail(Code::communication, "{}, where workers meet, is gone, and with it worker 0's command, which kept it: {}", where_,
         first_line(e.what()));
  }
}

MeetingStore::MeetingStore(const std::string& where, std::int64_t worker)
    : MeetingPlace(worker), where_(where), store_(std::make_unique<Store>()) {
  store_->all = open_tcp_store(where, client(worker));
  take_place();
  beats_ = std::thread([this] { beat(); });
}

MeetingStore::~MeetingStore() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  beats_.join();
  try {
    remove({name_of(self().worker)});
  } catch (const Error&) {
    return;  // the store is gone, and nobody waits for this worker there
  }
}

/// Another process that still counts is an earlier one of this worker, which is about to end, or one too many.
void MeetingStore::take_place() {
  const std::string name = name_of(self().worker), mine = self().process + " 0";
  const Clock::time_point end = Clock::now() + 2 * kSilence;
  for (Pauses pauses;; pauses.wait()) {
    const std::string before = process_of(self().worker) ? "" : read(name).value_or("");
    if (ask([&](c10d::Store& store) { return store.compareSet(key_of(name), before, mine); }) == mine) {
      return;
    }
    KF_CHECK(Clock::now() < end, Code::communication, "another process is worker {} of those that meet at {}: {}", self().worker, where_,
             process_in(read(name).value_or("")));
  }
}

void MeetingStore::beat() {
  const std::string name = name_of(self().worker);
  std::unique_lock lock(mutex_);
  for (std::int64_t count = 1; !ends_.wait_for(lock, kBeat, [this] { return ended_; }); ++count) {
    lock.unlock();
    try {
      put(name, format("{} {}", self().process, count));
    } catch (const Error&) {
      return;  // the worker's own calls say so
    }
    lock.lock();
  }
}

bool MeetingStore::others_live(std::int64_t workers) const {
  bool any = false;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    any = (worker != self().worker && living(worker)) || any;
  }
  return any;
}

std::optional<std::string> MeetingStore::read(const std::string& name) const {
  return ask(
      [&](c10d::Store& store) { return store.check({key_of(name)}) ? std::optional(store.get_to_str(key_of(name))) : std::nullopt; });
}

void MeetingStore::put(const std::string& name, const std::string& text) {
  ask([&](c10d::Store& store) { store.set(key_of(name), text); });
}

std::string MeetingStore::first(const std::string& name, const std::string& mine) {
  return ask([&](c10d::Store& store) { return store.compareSet(key_of(name), std::string(), mine); });
}

std::vector<std::string> MeetingStore::names() const {
  std::vector<std::string> out;
  for (const std::string& key : ask([](c10d::Store& store) { return store.listKeys(); })) {
    if (const std::size_t at = key.find(kMeetingPrefix); at <= 1) {  // c10d puts a slash before it
      out.push_back(key.substr(at + std::string_view(kMeetingPrefix).size()));
    }
  }
  return out;
}

void MeetingStore::remove(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ask([&](c10d::Store& store) { store.deleteKey(key_of(name)); });
  }
}

std::optional<std::string> MeetingStore::process_of(std::int64_t worker) const {
  const std::optional<std::string> text = read(name_of(worker));
  if (!text) {
    seen_.erase(worker);
    return std::nullopt;
  }
  Seen& seen = seen_[worker];
  if (seen.text != *text) {
    seen = {*text, Clock::now()};
  }
  return Clock::now() - seen.since < kSilence ? std::optional(process_in(*text)) : std::nullopt;
}

struct MeetingKeeper::Kept {
  c10::intrusive_ptr<c10d::Store> store;
};

MeetingKeeper::MeetingKeeper(std::string where, std::int64_t workers)
    : where_(std::move(where)), workers_(workers), kept_(std::make_unique<Kept>()) {
  const NoPipeSignal no_signal;  // in the server's threads
  TcpStoreOptions options = client(0);
  options.keeps = true;
  kept_->store = open_tcp_store(where_, options);
}

MeetingKeeper::~MeetingKeeper() = default;

void MeetingKeeper::wait_for_workers() {
  const MeetingStore place(where_, workers_);  // one more than there are: who looks
  if (place.others_live(workers_)) {
    log::info("other workers still meet at {}, which this command keeps until they end", where_);
  }
  for (Pauses pauses; place.others_live(workers_); pauses.wait()) {
  }
}

}  // namespace kf
