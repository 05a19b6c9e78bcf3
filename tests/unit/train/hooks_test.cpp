// The hooks of a run without a run around them.
#include "train/loop/hooks.h"

#include "core/error.h"

#include <catch2/catch.hpp>

using namespace kf;
using Catch::Matchers::Contains;

namespace {

/// Counts its calls, says who it is, and refuses states above `most`.
class Counter final : public Hook {
 public:
  Counter(std::string name, std::string who, std::string& said, std::int64_t priority = 0, std::int64_t most = 100)
      : name_(std::move(name)), who_(std::move(who)), said_(said), priority_(priority), most_(most) {}

  std::string name() const override { return name_; }
  bool wants(Event event, std::int64_t /*step*/) const override { return event == Event::step_end; }
  void call(Event /*event*/, HookContext& /*context*/) override { said_ += who_ + std::to_string(++count_) + " "; }
  std::int64_t priority() const override { return priority_; }
  config::Node state() override { return config::Node(count_); }
  void load(const config::Node& state) override {
    count_ = std::get<std::int64_t>(state.value);
    KF_CHECK(count_ <= most_, Code::script, "{} is too many", count_);
  }

 private:
  std::string name_, who_;
  std::string& said_;
  std::int64_t priority_, most_, count_ = 0;
};

}  // namespace

TEST_CASE("hooks: those of the job make room for new ones, which go on from the states of their names", "[hooks]") {
  std::string said;
  std::vector<std::unique_ptr<Hook>> list, others;
  list.push_back(std::make_unique<Counter>("one", "a", said));
  list.push_back(std::make_unique<Counter>("two", "b", said));
  others.push_back(std::make_unique<Counter>("own", "c", said));
  Hooks hooks(std::move(list), std::move(others));
  HookContext context;
  hooks.call(Event::step_end, context);
  CHECK(said == "a1 b1 c1 ");
  std::vector<std::unique_ptr<Hook>> fresh;
  fresh.push_back(std::make_unique<Counter>("new", "n", said));
  fresh.push_back(std::make_unique<Counter>("one", "A", said));
  fresh.push_back(std::make_unique<Counter>("own", "x", said));  // another one's name: it begins by itself
  fresh.push_back(std::make_unique<Counter>("last", "l", said, -1));
  hooks.hand_over(fresh);
  hooks.exchange(std::move(fresh));
  said.clear();
  hooks.call(Event::step_end, context);
  CHECK(said == "n1 A2 x1 c2 l1 ");
}

TEST_CASE("hooks: a state that a new one does not take leaves the old ones as they are", "[hooks]") {
  std::string said;
  std::vector<std::unique_ptr<Hook>> list, fresh;
  list.push_back(std::make_unique<Counter>("one", "a", said));
  Hooks hooks(std::move(list));
  HookContext context;
  hooks.call(Event::step_end, context);
  fresh.push_back(std::make_unique<Counter>("one", "A", said, 0, 0));
  CHECK_THROWS_WITH(hooks.hand_over(fresh), Contains("1 is too many"));
  hooks.call(Event::step_end, context);
  CHECK(said == "a1 a2 ");
}
