#include "metrics/sinks.h"

#include <catch2/catch.hpp>

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

TEST_CASE("sinks: each hears every event, in the order of the list", "[metrics]") {
  Heard heard;
  Sinks sinks;
  sinks.add("a", std::make_unique<HearingSink>(heard, [&](const std::string&) { heard.emplace_back("a:"); }));
  sinks.add("b", std::make_unique<HearingSink>(heard, [&](const std::string&) { heard.emplace_back("b:"); }));
  begin_at(sinks, 7);
  sinks.row(row_at(8));
  sinks.eval({.step = 8});
  sinks.before_save();
  sinks.saved(8, "p");
  sinks.rewind(4);
  sinks.step_over(5);
  sinks.end({.status = "stopped"});
  CHECK(join(heard, " ") ==
        "a: begin 7 b: begin 7 a: row 8 b: row 8 a: eval 8 b: eval 8 a: before_save b: before_save a: saved 8 p b: saved 8 p "
        "a: rewind 4 b: rewind 4 a: over 5 b: over 5 a: end stopped b: end stopped");
}

TEST_CASE("sinks: a state goes back to the sink of its name, and what nobody takes is said", "[metrics]") {
  Heard heard;
  Sinks sinks;
  CHECK(sinks.state().is_null());
  auto one = std::make_unique<HearingSink>(heard);
  HearingSink& a = *one;
  sinks.add("a", std::move(one));
  sinks.add("b", std::make_unique<HearingSink>(heard));
  CHECK(sinks.state().is_null());  // neither keeps anything
  a.kept = config::Node("run-17");
  const config::Node states = sinks.state();
  REQUIRE(states.table() != nullptr);
  CHECK(states.table()->find("b") == nullptr);
  a.kept = {};
  sinks.load({});  // a checkpoint without
  CHECK(a.kept.is_null());
  sinks.load(states);
  CHECK(a.kept == config::Node("run-17"));
  const std::size_t warnings = log::count(log::Level::warn);
  Sinks none;
  none.load(states);
  CHECK(log::count(log::Level::warn) == warnings + 1);
  CHECK_THROWS_WITH(none.load(config::Node("x")), Contains("no table"));
}

TEST_CASE("sinks: an error ends its event, but every sink ends", "[metrics]") {
  Heard heard;
  Sinks sinks;
  const auto failing = [](const std::string& event) { fail(Code::script, "no {}", event); };
  sinks.add("a", std::make_unique<HearingSink>(heard, failing));
  sinks.add("b", std::make_unique<HearingSink>(heard));
  sinks.add("c", std::make_unique<HearingSink>(heard, failing));
  CHECK_THROWS_WITH(sinks.row(row_at(3)), Contains("no row 3"));
  CHECK(heard.empty());
  const std::size_t errors = log::count(log::Level::error);
  CHECK_THROWS_WITH(sinks.end({.status = "complete"}), Contains("no end complete"));
  CHECK(heard == Heard{"end complete"});
  CHECK(log::count(log::Level::error) == errors + 1);  // the second one
}
