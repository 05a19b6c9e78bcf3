#include "metrics/background.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <thread>

#include "core/error.h"
#include "core/log.h"

#include "begin_at.h"
#include "heard.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::begin_at;
using kf::test::Heard;
using kf::test::HearingSink;
using kf::test::row_at;
using kf::test::tell_all;

TEST_CASE("background: the sink hears the same in the same order, on one other thread", "[metrics]") {
  const auto begin = [](Sink& sink) { begin_at(sink, 5); };
  Heard plain;
  HearingSink direct(plain);
  tell_all(direct, begin);
  Heard heard;
  std::vector<std::thread::id> threads;
  {
    const auto sink = in_background(
        std::make_unique<HearingSink>(heard, [&](const std::string&) { threads.push_back(std::this_thread::get_id()); }), 2, "x");
    tell_all(*sink, begin);
    sink->step_over(7);  // nothing is new since the last one: it is not told
    CHECK(sink->state() == config::Node("kept"));
  }
  plain.emplace_back("state");
  CHECK(heard == plain);
  CHECK(threads == std::vector<std::thread::id>(heard.size(), threads.at(0)));
  CHECK(threads[0] != std::this_thread::get_id());
}

TEST_CASE("background: a full queue holds the run up and drops nothing, with one warning", "[metrics]") {
  Heard heard;
  std::promise<void> answer;
  const std::shared_future<void> answered = answer.get_future().share();
  const auto sink = in_background(std::make_unique<HearingSink>(heard, [answered](const std::string&) { answered.wait(); }), 3, "slow");
  const std::size_t warnings = log::count(log::Level::warn);
  std::atomic<std::int64_t> told = 0;
  std::thread run([&] {
    for (std::int64_t step = 1; step <= 100; ++step) {
      sink->row(row_at(step));
      told = step;
    }
  });
  while (log::count(log::Level::warn) == warnings) {
    std::this_thread::yield();
  }
  CHECK(told <= 4);  // one is under way, three wait
  answer.set_value();
  run.join();
  sink->before_save();  // waits for all
  REQUIRE(heard.size() == 101);
  CHECK(heard[0] == "row 1");
  CHECK(heard[99] == "row 100");
  CHECK(log::count(log::Level::warn) == warnings + 1);
}

TEST_CASE("background: what the sink cannot do is known behind the event that showed it", "[metrics]") {
  Heard heard;
  auto hearing = std::make_unique<HearingSink>(heard);
  HearingSink& inner = *hearing;
  inner.trouble = "the disk is full";
  const auto sink = in_background(std::move(hearing), 4, "x");
  CHECK(sink->fault().empty());
  sink->row(row_at(1));
  sink->before_save();  // waits
  CHECK(sink->fault() == "the disk is full");
}

TEST_CASE("background: saves and the end wait for what came before", "[metrics]") {
  for (const bool at_end : {false, true}) {
    Heard heard;
    const auto sink = in_background(
        std::make_unique<HearingSink>(heard, [](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }), 50,
        "x");
    for (std::int64_t step = 1; step <= 20; ++step) {
      sink->row(row_at(step));
    }
    if (at_end) {
      sink->end({.status = "complete"});
    } else {
      sink->before_save();
    }
    CHECK(heard.size() == 21);
  }
}

TEST_CASE("background: an error of the sink surfaces once, at the next call or at the end", "[metrics]") {
  Heard heard;
  const auto failing = [](const std::string& event) { KF_CHECK(event != "row 2", Code::other, "no network for {}", event); };
  const auto sink = in_background(std::make_unique<HearingSink>(heard, failing), 10, "x");
  sink->row(row_at(1));
  sink->row(row_at(2));
  CHECK_THROWS_WITH(sink->before_save(), Contains("no network for row 2"));
  sink->row(row_at(2));
  CHECK_THROWS_WITH(sink->end({.status = "complete"}), Contains("no network for row 2"));
  CHECK(heard == Heard{"row 1", "before_save", "end complete"});  // it still hears of the end
  CHECK_NOTHROW(sink->before_save());
  const std::size_t errors = log::count(log::Level::error);
  {
    const auto alone = in_background(std::make_unique<HearingSink>(heard, failing), 10, "x");
    alone->row(row_at(2));
    alone->step_over(9);
  }  // the run failed elsewhere: what waited is delivered, the error is logged
  CHECK(heard.back() == "over 9");
  CHECK(log::count(log::Level::error) == errors + 1);
  CHECK_THROWS_WITH(in_background(nullptr, 0, "x"), Contains("at least one event"));
}
