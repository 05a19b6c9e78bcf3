#include "parallel/c10d_group.h"

#include <ATen/core/grad_mode.h>

#include <numeric>

#include "core/error.h"
#include "core/trace.h"
#include "parallel/c10d_round.h"
#include "parallel/call.h"
#include "parallel/one_rank.h"
#include "parallel/traffic.h"
#include "parallel/words.h"
#include "parallel/worker.h"

namespace kf {
namespace {

using Clock = GlooLink::Clock;

// What is whose: calls_ is used by the thread that carries out calls, which is the group's worker while jobs are under way and the
// caller's while there are none (`drain` orders the two); letters_ are the caller's; the link and the room have locks of their own.
class C10dGroup final : public Group, public Metered {
 public:
  C10dGroup(std::shared_ptr<Room> room, std::shared_ptr<TrafficBook> book, std::string name, std::string key,
            std::vector<std::int64_t> ranks, std::int64_t rank)
      : Group(std::move(name), std::move(ranks), rank),
        Metered(std::move(book)),
        room_(std::move(room)),
        key_(std::move(key)),
        link_(room_->connect(key_, this->ranks(), rank)),
        sent_(this->ranks().size()),
        wanted_(this->ranks().size()) {}

  void end(std::string_view why) noexcept override {
    room_->settle(format("rank {}: {}", of_world(rank()), why));
    room_->close();
  }

 protected:
  Pending start(Call call) override {
    check_device(call.to);
    const std::shared_future<void> end = worker_.add([this, call = std::move(call)] { carry_out(call); });
    return Pending([this, end] {
      const Waiting waiting(*this);
      end.get();
    });
  }

  void run(Call call) override {
    check_device(call.to);
    const Waiting waiting(*this);
    worker_.drain();
    carry_out(call);
  }

  Pending start_send(const at::Tensor& t, std::int64_t to) override { return letter(t, to, sent_[static_cast<std::size_t>(to)]++, true); }
  Pending start_receive(const at::Tensor& t, std::int64_t from) override {
    return letter(t, from, wanted_[static_cast<std::size_t>(from)]++, false);
  }

  std::unique_ptr<Group> make_part(const std::string& name, const std::string& key, std::vector<std::int64_t> ranks,
                                   std::int64_t rank) override {
    return std::make_unique<C10dGroup>(room_, shared_book(), name, key_ + "/" + key, std::move(ranks), rank);
  }

 private:
  /// The rank's own thread stands still.
  class Waiting {
   public:
    explicit Waiting(C10dGroup& group) : group_(group), range_(TraceKind::op, "waiting for ranks", group.name().c_str()) {}
    ~Waiting() { group_.book().waited(group_.name(), begin_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    C10dGroup& group_;
    TraceRange range_;
    TrafficBook::Clock::time_point begin_ = TrafficBook::Clock::now();
  };

  std::int64_t of_world(std::int64_t rank) const { return ranks()[static_cast<std::size_t>(rank)]; }
  Clock::time_point deadline() const { return Clock::now() + room_->rendezvous().timeout; }

  void check_device(const at::Tensor& t) const {
    KF_CHECK(!t.defined() || t.is_cpu(), Code::communication, "group {} is over Gloo and takes tensors on the CPU, not on {}", name(),
             t.device().str());
  }

  void carry_out(const Call& call) {
    const at::NoGradGuard no_grad;
    const auto begin = TrafficBook::Clock::now();
    const std::int64_t number = calls_++;
    const auto what = [&] { return format("{} in group {}", call.text(), name()); };
    try {
      carry_out_round(*link_, *this, call, number, deadline());
      book().sent(name(), kind_of(call.op), bytes_sent(*this, call));
      book().took(name(), begin);
    } catch (const LinkFault& fault) {
      give_up(explain(fault, what(), number), what());
    } catch (const Mismatch& mismatch) {
      give_up(room_->settle(format("calls in group {} do not match: {}", name(), mismatch.text)), what());
    } catch (const std::exception& e) {  // no memory, say
      give_up(room_->settle(format("rank {}: {}", of_world(rank()), first_line(e.what()))), what());
    }
  }

  Pending letter(const at::Tensor& t, std::int64_t peer, std::int64_t number, bool sends) {
    check_device(t);
    const auto what = [this, t, peer, sends] {
      return format("{} of {} {} rank {} in group {}", sends ? "send" : "receive", describe(t), sends ? "to" : "from", of_world(peer),
                    name());
    };
    try {
      const Letter letter = begin_letter(*link_, t, peer, number, sends);
      if (sends) {
        book().sent(name(), CallKind::send, static_cast<std::int64_t>(t.nbytes()));
      }
      return Pending([=, this, begin = TrafficBook::Clock::now()] {
        const Waiting waiting(*this);
        finish(letter, t, peer, sends, what());
        book().took(name(), begin);
      });
    } catch (const LinkFault& fault) {
      return Pending([=, this] { give_up(explain_letter(fault, what()), what()); });
    }
  }

  void finish(const Letter& letter, const at::Tensor& t, std::int64_t peer, bool sends, const std::string& what) {
    try {
      finish_letter(*link_, *this, letter, t, peer, sends, deadline());
    } catch (const LinkFault& fault) {
      give_up(explain_letter(fault, what), what);
    } catch (const Mismatch& mismatch) {
      give_up(room_->settle(format("calls in group {} do not match: {}", name(), mismatch.text)), what);
    }
  }

  std::string within() const { return format("within {} s", static_cast<double>(room_->rendezvous().timeout.count()) / 1000); }

  std::string gone(const LinkFault& fault, const std::string& what) const {
    return format("rank {} is gone: its connection to rank {} closed in {} ({})", of_world(fault.peer), of_world(rank()), what, fault.text);
  }

  // Why a call failed, after asking the others.
  std::string explain(const LinkFault& fault, const std::string& what, std::int64_t number) {
    room_->leave(key_, number);
    if (!fault.timed_out) {
      return room_->settle_loss(of_world(fault.peer), gone(fault, what));
    }
    const std::vector<std::int64_t> missing = room_->missing(key_, number, ranks(), std::chrono::seconds(2));
    if (missing.empty()) {
      return room_->settle(format("{} was not done {}, although all ranks came: rank {} heard nothing of rank {}", what, within(),
                                  of_world(rank()), of_world(fault.peer)));
    }
    return room_->settle(format("{} did not come to {} {}", room_->names(missing), what, within()));
  }

  std::string explain_letter(const LinkFault& fault, const std::string& what) {
    room_->leave(key_, -1);
    return fault.timed_out ? room_->settle(format("rank {} did not answer the {} of rank {} {}", of_world(fault.peer), what,
                                                  of_world(rank()), within()))
                           : room_->settle_loss(of_world(fault.peer), gone(fault, what));
  }

  [[noreturn]] void give_up(const std::string& verdict, const std::string& what) {
    room_->close();
    Error error(Code::communication, verdict);
    error.context(format("while rank {} was in {}", of_world(rank()), what));
    throw error;
  }

  std::shared_ptr<Room> room_;
  std::string key_;
  std::shared_ptr<GlooLink> link_;
  std::int64_t calls_ = 0;
  std::vector<std::int64_t> sent_, wanted_;  // letters so far, by peer
  Worker worker_;                            // last: its thread uses the others
};

}  // namespace

std::unique_ptr<Group> join_processes(const Rendezvous& rendezvous) {
  if (rendezvous.world == 1) {
    return std::make_unique<OneRank>();
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(rendezvous.world));
  std::iota(all.begin(), all.end(), 0);
  return std::make_unique<C10dGroup>(std::make_shared<Room>(rendezvous), std::make_shared<TrafficBook>(), "all", "all", all,
                                     rendezvous.rank);
}

}  // namespace kf
