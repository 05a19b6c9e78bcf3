#include "parallel/thread_ranks.h"

#include <exception>
#include <thread>

#include "core/error.h"
#include "parallel/group.h"
#include "parallel/one_rank.h"
#include "parallel/thread_hub.h"

namespace kf {
namespace {

class ThreadGroup final : public Group {
 public:
  ThreadGroup(ThreadHub& hub, std::string name, std::string key, std::vector<std::int64_t> ranks, std::int64_t rank)
      : Group(std::move(name), std::move(ranks), rank), hub_(hub), key_(std::move(key)) {}

  void end(std::string_view why) noexcept override { hub_.ended_with(of_world(), why); }

 protected:
  Pending start(Call call) override { return waiting_for(hub_.call(*this, key_, std::move(call))); }
  Pending start_send(const at::Tensor& t, std::int64_t to) override { return waiting_for(hub_.send(*this, key_, t, to)); }
  Pending start_receive(const at::Tensor& t, std::int64_t from) override { return waiting_for(hub_.receive(*this, key_, t, from)); }
  std::unique_ptr<Group> make_part(const std::string& name, const std::string& key, std::vector<std::int64_t> ranks,
                                   std::int64_t rank) override {
    return std::make_unique<ThreadGroup>(hub_, name, key_ + "/" + key, std::move(ranks), rank);
  }

 private:
  std::int64_t of_world() const { return ranks()[static_cast<std::size_t>(rank())]; }
  Pending waiting_for(Ticket ticket) {
    return Pending([&hub = hub_, rank = of_world(), ticket = std::move(ticket)] { hub.wait(rank, ticket); });
  }

  ThreadHub& hub_;
  std::string key_;
};

// What a rank threw, with its name before the message.
struct Thrown {
  Code code = Code::other;
  std::string message;
};

void run_rank(ThreadHub& hub, const std::vector<std::int64_t>& all, std::int64_t rank, const std::function<void(Group& all)>& body,
              std::optional<Thrown>& thrown) {
  const auto ends = [&](Code code, const std::string& message) {
    if (!hub.was_told(rank)) {
      thrown = Thrown{code, format("rank {}: {}", rank, message)};
    }
    hub.ended_with(rank, message);
  };
  try {
    ThreadGroup group(hub, "all", "all", all, rank);
    body(group);
    hub.returned(rank);
  } catch (const Error& e) {
    ends(e.code(), e.what());
  } catch (const std::exception& e) {
    ends(Code::other, e.what());
  } catch (...) {  // a test's assertion; no Lua runs on these threads
    ends(Code::other, "an exception that is no std::exception");
  }
}

}  // namespace

void run_ranks(std::int64_t ranks, const std::function<void(Group& all)>& body) {
  KF_CHECK(ranks >= 1, Code::communication, "{} ranks", ranks);
  ThreadHub hub(ranks);
  std::vector<std::int64_t> all;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    all.push_back(rank);
  }
  std::vector<std::optional<Thrown>> thrown(all.size());  // an entry is its thread's until that is joined
  {
    std::vector<std::jthread> threads;
    for (const std::int64_t rank : all) {
      threads.emplace_back([&, rank] { run_rank(hub, all, rank, body, thrown[static_cast<std::size_t>(rank)]); });
    }
  }
  for (const auto& one : thrown) {
    if (one) {
      throw Error(one->code, one->message);
    }
  }
  if (const auto fault = hub.fault()) {
    throw Error(Code::communication, *fault);
  }
}

}  // namespace kf
