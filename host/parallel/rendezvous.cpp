#include "parallel/rendezvous.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>
#include <tuple>

#include "core/error.h"
#include "parallel/no_pipe_signal.h"
#include "parallel/own_address.h"
#include "parallel/tcp_store.h"
#include "parallel/words.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kFile = "file:";
// A rank that sees an error looks for word of the others this long: they see it at the same time or never.
constexpr milliseconds kGrace{1000};
constexpr milliseconds kPatience{4000};

std::string seconds_of(milliseconds time) { return to_text(static_cast<double>(time.count()) / 1000) + " s"; }

// Asks `done` every few milliseconds, less often the longer it takes.
template <class Done>
bool poll(milliseconds time, const Done& done) {
  const auto deadline = Clock::now() + time;
  for (milliseconds pause{2};; pause = std::min(pause * 2, milliseconds(100))) {
    if (done()) {
      return true;
    }
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::min(pause, std::chrono::duration_cast<milliseconds>(deadline - Clock::now()) + milliseconds(1)));
  }
}

bool on_this_machine(const std::string& where) {
  return where.starts_with(kFile) || where.starts_with("localhost:") || where.starts_with("127.");
}

}  // namespace

struct Room::Store {
  c10::intrusive_ptr<c10d::Store> all;
};

Room::Room(const Rendezvous& rendezvous) : rendezvous_(rendezvous), store_(std::make_unique<Store>()) {
  KF_CHECK(rendezvous.rank >= 0 && rendezvous.rank < rendezvous.world, Code::communication, "rank {} of a world of {}", rendezvous.rank,
           rendezvous.world);
  if (rendezvous_.address.empty() && on_this_machine(rendezvous_.where)) {
    rendezvous_.address = "127.0.0.1";
  }
  open();
}

void Room::open() {
  connect_store();
  if (!on_this_machine(rendezvous_.where)) {
    store_->all->set(format("host/{}", rendezvous_.rank), host_name());
  }
}

void Room::connect_store() {
  const NoPipeSignal no_signal;  // in the server's threads; clients write with MSG_NOSIGNAL
  const std::string& where = rendezvous_.where;
  const auto [rank, world, timeout] = std::tuple(rendezvous_.rank, rendezvous_.world, rendezvous_.timeout);
  try {
    if (where.starts_with(kFile)) {
      store_->all = c10::make_intrusive<c10d::FileStore>(where.substr(kFile.size()), static_cast<int>(world));
      store_->all->setTimeout(timeout);
      return;
    }
    const char* const keeper = rendezvous_.kept ? "who started this process" : "rank 0";
    store_->all = open_tcp_store(
        where,
        {.who = format("rank {}", rank), .keeper = keeper, .world = world, .keeps = rank == 0 && !rendezvous_.kept, .timeout = timeout});
    if (!rendezvous_.prefix.empty()) {
      store_->all = c10::make_intrusive<c10d::PrefixStore>(rendezvous_.prefix, store_->all);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    fail(Code::communication, "rank {} cannot use the rendezvous {}: {}", rank, where, first_line(e.what()));
  }
}

// Rank 0 takes a rendezvous by TCP with it when it ends: after an error the others get a moment to read the verdict.
Room::~Room() {
  const bool keeps = rendezvous_.rank == 0 && !rendezvous_.kept && !rendezvous_.where.starts_with(kFile);
  if (said() && keeps) {
    std::vector<std::int64_t> others(static_cast<std::size_t>(rendezvous_.world - 1));
    std::iota(others.begin(), others.end(), 1);
    poll(kGrace,
         [&] { return std::all_of(others.begin(), others.end(), [&](std::int64_t rank) { return has(format("read/{}", rank)); }); });
  }
}

void Room::wait_for_all(const std::string& key, const std::vector<std::int64_t>& ranks) {
  const auto name = [&](std::int64_t rank) { return format("arrived/{}/{}", key, rank); };
  store_->all->set(name(rendezvous_.rank), "1");
  std::vector<std::string> keys;
  for (const std::int64_t rank : ranks) {
    keys.push_back(name(rank));
  }
  std::optional<std::string> ended;
  const bool all = poll(rendezvous_.timeout, [&] { return store_->all->check(keys) || (ended = verdict()); });
  if (ended) {
    throw Error(Code::communication, *ended).context(format("while rank {} was joining group {}", rendezvous_.rank, key));
  }
  if (!all) {
    std::vector<std::int64_t> missing;
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(missing), [&](std::int64_t rank) { return !has(name(rank)); });
    const std::string why = format("{} of {} did not come to the rendezvous {} (group {}) within {}", names(missing), ranks.size(),
                                   rendezvous_.where, key, seconds_of(rendezvous_.timeout));
    throw Error(Code::communication, settle(why));
  }
}

std::shared_ptr<GlooLink> Room::connect(const std::string& key, const std::vector<std::int64_t>& ranks, std::int64_t rank) {
  try {
    wait_for_all(key, ranks);
    const auto store = c10::make_intrusive<c10d::PrefixStore>("gloo/" + key, store_->all);
    auto link = std::make_shared<GlooLink>(store, rank, static_cast<std::int64_t>(ranks.size()), rendezvous_.timeout, rendezvous_.address);
    const std::lock_guard lock(mutex_);
    links_.push_back(link);
    return link;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(Code::communication,
                settle(format("rank {} cannot connect to {}: {}", rendezvous_.rank, ranks_text(ranks), first_line(e.what()))));
  }
}

bool Room::has(const std::string& key) noexcept {
  try {
    return store_->all->check({key});
  } catch (const std::exception&) {
    return false;  // the store is gone
  }
}

std::optional<std::string> Room::said() {
  const std::lock_guard lock(mutex_);
  return said_;
}

// The first verdict that is known here stays. `read`: it stands in the store, and this rank says that it has read it.
std::string Room::remember(const std::string& verdict, bool read) noexcept {
  if (read) {
    try {
      store_->all->set(format("read/{}", rendezvous_.rank), "1");
    } catch (const std::exception&) {
      // The store is gone meanwhile: nobody waits for the answer.
    }
  }
  const std::lock_guard lock(mutex_);
  said_ = said_.value_or(verdict);
  return *said_;
}

std::optional<std::string> Room::verdict() noexcept {
  if (auto known = said()) {
    return known;
  }
  try {
    if (store_->all->check({"verdict"})) {
      return remember(store_->all->get_to_str("verdict"), true);
    }
  } catch (const std::exception&) {
    return std::nullopt;  // the store is gone
  }
  return std::nullopt;
}

void Room::leave(const std::string& key, std::int64_t number) noexcept {
  try {
    store_->all->set(format("at/{}/{}/{}", key, number, rendezvous_.rank), "1");
    store_->all->set(format("left/{}", rendezvous_.rank), "1");
  } catch (const std::exception&) {
    return;  // the store is gone: `settle` says so
  }
}

std::vector<std::int64_t> Room::missing(const std::string& key, std::int64_t number, const std::vector<std::int64_t>& ranks,
                                        milliseconds patience) noexcept {
  std::vector<std::int64_t> missing = ranks;
  poll(patience, [&] {
    std::erase_if(missing, [&](std::int64_t rank) { return has(format("at/{}/{}/{}", key, number, rank)); });
    return missing.empty();
  });
  return missing;
}

std::string Room::settle(const std::string& why) noexcept {
  if (const auto known = said()) {
    return *known;
  }
  try {
    return remember(store_->all->compareSet("verdict", std::string(), why), true);
  } catch (const std::exception&) {
    const bool kept_by_other = (rendezvous_.rank != 0 || rendezvous_.kept) && !rendezvous_.where.starts_with(kFile);
    const char* const keeper = rendezvous_.kept ? "who started this process, and" : "rank 0, which";
    return remember(kept_by_other ? format("{} keeps the rendezvous {}, is gone", keeper, rendezvous_.where) : why, false);
  }
}

std::string Room::settle_loss(std::int64_t peer, const std::string& why) noexcept {
  std::optional<std::string> said;
  const std::string word = format("left/{}", peer);
  poll(kGrace, [&] { return (said = verdict()) || has(word); });
  if (!said && has(word)) {
    poll(kPatience, [&] { return bool(said = verdict()); });
  }
  return said ? *said : settle(why);
}

std::string Room::names(const std::vector<std::int64_t>& ranks) noexcept {
  const std::vector<std::string>& hosts = rendezvous_.hosts;
  const bool several =
      !on_this_machine(rendezvous_.where) || std::adjacent_find(hosts.begin(), hosts.end(), std::not_equal_to<>()) != hosts.end();
  std::vector<std::string> texts;
  for (const std::int64_t rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    std::string host = index < hosts.size() ? hosts[index] : "";
    try {
      const std::string key = format("host/{}", rank);
      host = several && store_->all->check({key}) ? store_->all->get_to_str(key) : host;
    } catch (const std::exception&) {
      // The store is gone: what the launcher said is all that is known.
    }
    texts.push_back(several && !host.empty() ? format("{} (on {})", rank, host) : to_text(rank));
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(texts, ", ");
}

void find_rendezvous(const std::string& where, const std::string& who) {
  if (!where.starts_with(kFile)) {
    find_host(where, {.who = who}, kNamePatience);
  }
}

void leave_verdict(const std::string& where, const std::string& why) noexcept try {
  const NoPipeSignal no_signal;
  c10::intrusive_ptr<c10d::Store> store;
  if (where.starts_with(kFile)) {
    store = c10::make_intrusive<c10d::FileStore>(where.substr(kFile.size()), -1);  // -1: its end removes no file
  } else {
    store = open_tcp_store(where, {.timeout = kPatience});
  }
  store->setTimeout(kPatience);
  store->compareSet("verdict", std::string(), why);
} catch (const std::exception&) {
  // The store is gone, and with it who could read it.
}

void Room::close() noexcept {
  std::vector<std::weak_ptr<GlooLink>> links;
  {
    const std::lock_guard lock(mutex_);
    links.swap(links_);
  }
  for (const auto& link : links) {
    if (const auto open = link.lock()) {
      open->close();
    }
  }
}

}  // namespace kf
