#include "metrics/names/names.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "core/text.h"
#include "metrics/jsonl.h"
#include "metrics/step_times.h"
#include "metrics/wall_time.h"
#include "support/temp_dir.h"

#include "begin_at.h"

using namespace kf;

TEST_CASE("names: a row of a file has the numbers of every row, in their order, and reads back to them", "[metrics]") {
  StepRow row;
  double next = 1;
  each_number(row,
              [&next](const char* /*name*/, bool /*mean*/, auto& number) { number = static_cast<std::decay_t<decltype(number)>>(next++); });
  row.tokens = (std::int64_t{1} << 53) + 1;  // no double
  row.extra = {{"mine", 0.5}};
  std::vector<std::string> names, expected;
  for (const auto& [name, value] : to_table(row)) {
    names.push_back(name);
  }
  for (const NumberRow& number : number_rows()) {
    if (is_in_every_row(number.name)) {
      expected.emplace_back(number.name);
    }
  }
  expected.emplace_back("mine");
  CHECK(names == expected);
  const test::TempDir dir;
  JsonlSink sink(dir / "metrics.jsonl");
  test::begin_at(sink, 0);
  sink.row(row);
  const auto rows = read_rows(dir / "metrics.jsonl");
  REQUIRE(rows.size() == 1);
  CHECK((to_table(std::get<StepRow>(rows[0])) == to_table(row)));
  CHECK(std::get<StepRow>(rows[0]).tokens == row.tokens);
}

TEST_CASE("names: every number has words of its own, and its name is taken", "[metrics]") {
  std::set<std::string_view> seen;
  for (const NumberRow& row : number_rows()) {
    CAPTURE(row.name);
    CHECK(seen.insert(row.name).second);
    CHECK(row.doc.ends_with('.'));
    CHECK(row.doc.find('|') == std::string_view::npos);  // it stands in a table
    const bool named = row.kind == NumberRow::Kind::family || row.kind == NumberRow::Kind::sourced;
    CHECK(is_row_key(named ? row_key::of(row.name, "x") : std::string(row.name)) == (row.kind != NumberRow::Kind::sourced));
  }
  for (const char* name : {"eval", "eval.mine", "eval/mine", "not_finite", "eval_loss", "eval_code_tokens", "eval_ema",
                           "eval_code_mtp_acceptance", "loss_fn/focal", "time/save", "watch/grads/layers.0"}) {
    CHECK(is_row_key(name));
  }
  for (const char* name : {"mine", "loss/web", "data/web/tokens", "moe/mine", "eval_mine", "evaluated/mine", "losses"}) {
    CHECK_FALSE(is_row_key(name));
  }
  for (const char* name : {"loss/web", "data/web/tokens", "data/web/epochs"}) {
    CHECK(is_source_key(name, "web"));
    CHECK_FALSE(is_source_key(name, "code"));
  }
  CHECK(row_key::of(row_key::source_tokens, "web") == "data/web/tokens");
}

TEST_CASE("names: what goodput adds has its rows", "[metrics]") {
  StepTimes times(0);
  times.add(1);
  for (const Values& values : {WallTime().row(), times.row()}) {
    CHECK_FALSE(values.empty());
    for (const auto& [name, value] : values) {
      CAPTURE(name);
      CHECK(is_row_key(name));
    }
  }
}
