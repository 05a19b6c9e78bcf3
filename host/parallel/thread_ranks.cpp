#include "parallel/thread_ranks.h"

#include <exception>
#include <future>

#include "core/error.h"
#include "parallel/group.h"
#include "parallel/one_rank.h"
#include "parallel/thread_hub.h"
#include "parallel/traffic.h"

namespace kf {
namespace {

class ThreadGroup final : public Group, public Metered {
 public:
  ThreadGroup(ThreadHub& hub, std::shared_ptr<TrafficBook> book, std::string name, std::string key, std::vector<std::int64_t> ranks,
              std::int64_t rank)
      : Group(std::move(name), std::move(ranks), rank), Metered(std::move(book)), hub_(hub), key_(std::move(key)) {}

  void end(std::string_view why) noexcept override { hub_.ended_with(of_world(), why); }

 protected:
  Pending start(Call call) override {
    book().sent(name(), kind_of(call.op), bytes_sent(*this, call));
    return waiting_for(hub_.call(*this, key_, std::move(call)));
  }
  Pending start_send(const at::Tensor& t, std::int64_t to) override {
    book().sent(name(), CallKind::send, static_cast<std::int64_t>(t.nbytes()));
    return waiting_for(hub_.send(*this, key_, t, to));
  }
  Pending start_receive(const at::Tensor& t, std::int64_t from) override { return waiting_for(hub_.receive(*this, key_, t, from)); }
  std::unique_ptr<Group> make_part(const std::string& name, const std::string& key, std::vector<std::int64_t> ranks,
                                   std::int64_t rank) override {
    return std::make_unique<ThreadGroup>(hub_, shared_book(), name, key_ + "/" + key, std::move(ranks), rank);
  }

 private:
  std::int64_t of_world() const { return ranks()[static_cast<std::size_t>(rank())]; }
  Pending waiting_for(Ticket ticket) {
    const auto begun = TrafficBook::Clock::now();
    return Pending([this, begun, ticket = std::move(ticket)] {
      const auto begin = TrafficBook::Clock::now();
      hub_.wait(of_world(), ticket);
      book().waited(name(), begin);
      book().took(name(), begun);  // when it was done before, nobody saw
    });
  }

  ThreadHub& hub_;
  std::string key_;
};

// What a rank threw, with its name before the message.
struct Thrown {
  Code code = Code::other;
  std::string message;
};

// How a rank ends, whatever it is that it throws: the others are told.
class Farewell {
 public:
  Farewell(ThreadHub& hub, std::int64_t rank, std::optional<Thrown>& thrown) : hub_(hub), rank_(rank), thrown_(thrown) {}
  ~Farewell() {
    if (!said_) {
      failed(Code::other, "an exception that is no std::exception");
    }
  }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

  void well() {
    said_ = true;
    hub_.returned(rank_);
  }
  void failed(Code code, const std::string& message) {
    said_ = true;
    if (!hub_.was_told(rank_)) {  // else its error is a consequence of another's
      thrown_ = Thrown{code, format("rank {}: {}", rank_, message)};
    }
    hub_.ended_with(rank_, message);
  }

 private:
  ThreadHub& hub_;
  std::int64_t rank_;
  std::optional<Thrown>& thrown_;
  bool said_ = false;
};

void run_rank(ThreadHub& hub, const std::vector<std::int64_t>& all, std::int64_t rank, const std::function<void(Group& all)>& body,
              std::optional<Thrown>& thrown) {
  Farewell farewell(hub, rank, thrown);
  try {
    ThreadGroup group(hub, std::make_shared<TrafficBook>(), "all", "all", all, rank);
    body(group);
    farewell.well();
  } catch (const Error& e) {
    farewell.failed(e.code(), e.what());
  } catch (const std::exception& e) {
    farewell.failed(Code::other, e.what());
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
  std::vector<std::optional<Thrown>> thrown(all.size());  // an entry is its thread's until that has ended
  {
    std::vector<std::future<void>> ends;  // which hold what is no std::exception (a test's assertion): Farewell has told of it
    for (const std::int64_t rank : all) {
      ends.push_back(std::async(std::launch::async, run_rank, std::ref(hub), std::cref(all), rank, std::cref(body),
                                std::ref(thrown[static_cast<std::size_t>(rank)])));
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
