#include <catch2/catch.hpp>

#include <cmath>

#include "core/error.h"
#include "metrics/tracker/job_settings.h"
#include "metrics/tracker/numbers.h"
#include "metrics/tracker/step_record.h"
#include "support/temp_dir.h"

#include "tracked_run.h"

using namespace kf;
using Catch::Matchers::Contains;

namespace {

std::size_t count_of(const Values& values, const std::string& name) {
  return static_cast<std::size_t>(std::count_if(values.begin(), values.end(), [&name](const auto& value) { return value.first == name; }));
}

}  // namespace

TEST_CASE("trackers: a number stands once in a row, and means over nothing not at all", "[trackers]") {
  StepRow row = test::tracked_row(3, 1.5);
  row.extra.emplace_back("watch/grads", 9);
  const Values values = tracked_numbers(row);
  CHECK(count_of(values, "watch/grads") == 1);
  CHECK(*find_number(values, "watch/grads") == 9);
  CHECK(*find_number(values, "loss") == 1.5);
  CHECK(count_of(values, "step") == 0);
  row.has_loss = false;
  CHECK(count_of(tracked_numbers(row), "loss") == 0);
  CHECK(count_of(tracked_numbers(row), "tokens") == 1);
}

TEST_CASE("trackers: numbers of an evaluation and of its sets have their paths", "[trackers]") {
  EvalResult eval{.step = 3, .loss = 2, .perplexity = 7, .tokens = 5};
  eval.sets = {{.step = 3, .loss = std::nan(""), .perplexity = std::nan(""), .tokens = 0, .name = "empty"},
               {.step = 3, .loss = 4, .perplexity = 8, .tokens = 6, .name = "code"}};
  const Values values = tracked_numbers(eval);
  CHECK(*find_number(values, "eval/loss") == 2);
  CHECK(*find_number(values, "eval/code/tokens") == 6);
  CHECK(count_of(values, "eval/empty/loss") == 0);
}

TEST_CASE("trackers: settings have their keys, and lists are JSON", "[trackers]") {
  const config::Config config;
  const config::Plan plan;
  const config::Table job = job_settings({config, plan, "", "[a]\nx = 1\ny = [1, 2.5]\n[a.b]\nz = true\n", 0, 0});
  const auto leaves = setting_leaves(job);
  REQUIRE(leaves.size() == 3);
  CHECK((leaves[0].first == "a.x" && leaves[0].second == config::Node(std::int64_t{1})));
  CHECK((leaves[1].first == "a.y" && leaves[1].second == config::Node("[1, 2.5]")));
  CHECK((leaves[2].first == "a.b.z" && leaves[2].second == config::Node(true)));
}

TEST_CASE("trackers: records that wait are a state, and only such a state is taken", "[trackers]") {
  const std::deque<StepRecord> waiting{{3, std::string("\0\xff", 2)}, {4, "x"}};
  const std::deque<StepRecord> back = records_of(to_state(waiting), "x");
  REQUIRE(back.size() == 2);
  CHECK(back[0].step == 3);
  CHECK(back[0].bytes == waiting[0].bytes);
  CHECK(to_state({}).is_null());
  CHECK_THROWS_WITH(records_of(config::Node("x"), "the file"), Contains("records for the file are no list"));
  CHECK_THROWS_WITH(records_of(config::Node(config::Array{config::Node("x")}), "the file"), Contains("no pair of step and bytes"));
}
