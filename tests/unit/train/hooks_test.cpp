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

TEST_CASE("hooks: one takes the place of another and goes on from its state", "[hooks]") {
  std::string said;
  std::vector<std::unique_ptr<Hook>> list;
  list.push_back(std::make_unique<Counter>("one", "a", said));
  list.push_back(std::make_unique<Counter>("two", "b", said));
  Hooks hooks(std::move(list));
  HookContext context;
  hooks.call(Event::step_end, context);
  hooks.replace("one", std::make_unique<Counter>("one", "A", said));
  hooks.call(Event::step_end, context);
  CHECK(said == "a1 b1 A2 b2 ");
  hooks.replace("one", std::make_unique<Counter>("one", "late", said, -1));
  said.clear();
  hooks.call(Event::step_end, context);
  CHECK(said == "b3 late3 ");
}

TEST_CASE("hooks: what cannot take the place of another leaves it there", "[hooks]") {
  std::string said;
  std::vector<std::unique_ptr<Hook>> list;
  list.push_back(std::make_unique<Counter>("one", "a", said));
  Hooks hooks(std::move(list));
  HookContext context;
  hooks.call(Event::step_end, context);
  CHECK_THROWS_WITH(hooks.replace("one", std::make_unique<Counter>("one", "A", said, 0, 0)), Contains("1 is too many"));
  CHECK_THROWS_WITH(hooks.replace("two", std::make_unique<Counter>("two", "A", said)), Contains("no hook 'two'"));
  CHECK_THROWS_WITH(hooks.replace("one", std::make_unique<Counter>("two", "A", said)), Contains("cannot take the place of 'one'"));
  hooks.call(Event::step_end, context);
  CHECK(said == "a1 a2 ");
}
