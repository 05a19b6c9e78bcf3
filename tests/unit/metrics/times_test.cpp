// Where the wall time goes, slow steps, and the heartbeat.

#include <catch2/catch.hpp>

#include <map>

#include "config/tree/json.h"
#include "metrics/heartbeat.h"
#include "metrics/step_times.h"
#include "metrics/wall_time.h"
#include "support/temp_dir.h"

using namespace kf;

namespace {

std::map<std::string, double> row_of(const WallTime& wall) {
  const Values values = wall.row();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("wall time: goodput is the share of the time in updates that count, over crashes and roll-backs", "[metrics]") {
  double now = 1000;
  const auto clock = [&now] { return now; };
  config::Node saved;
  {
    WallTime wall(clock);
    now += 10;
    wall.started();
    now += 60;  // of which an evaluation and 20 s are nobody's
    wall.add(WallTime::Cause::data, 5);
    wall.add(WallTime::Cause::step, 25);
    wall.add(WallTime::Cause::eval, 10);
    CHECK(row_of(wall) == std::map<std::string, double>{{"goodput", 25.0 / 70},
                                                        {"time/start", 10},
                                                        {"time/data", 5},
                                                        {"time/skipped", 0},
                                                        {"time/eval", 10},
                                                        {"time/save", 0},
                                                        {"time/lost", 0},
                                                        {"time/other", 20}});
    saved = wall.state();
    now += 8;
    wall.add(WallTime::Cause::step, 8);  // then the machine dies
  }
  now += 22;
  WallTime wall(clock, now);
  wall.load(saved);
  now += 4;
  wall.started();
  std::map<std::string, double> row = row_of(wall);
  CHECK(row["time/lost"] == 30);  // 8 s of updates that are done again, 22 s of nothing
  CHECK(row["time/start"] == 14);
  CHECK(row["goodput"] == Approx(25.0 / 104));
  const config::Node again = wall.state();
  now += 6;
  wall.add(WallTime::Cause::step, 6);
  wall.roll_back(again);
  row = row_of(wall);
  CHECK(row["time/lost"] == 36);
  CHECK(row["goodput"] == Approx(25.0 / 110));
  WallTime fresh(clock);
  fresh.load({});  // of a checkpoint that says nothing
  CHECK(row_of(fresh)["time/lost"] == 0);
}

TEST_CASE("step times: a step stands out by a multiple of the median and by a second", "[metrics]") {
  StepTimes times(5);
  for (int i = 0; i < 7; ++i) {
    CHECK_FALSE(times.add(i == 0 ? 30 : 0.5));  // the first one warms up; too few are known
  }
  CHECK_FALSE(times.add(9));
  CHECK_FALSE(times.add(2.4));
  CHECK(times.add(2.5) == 0.5);
  StepTimes quick(5);
  for (int i = 0; i < 20; ++i) {
    quick.add(0.01);
  }
  CHECK_FALSE(quick.add(0.9));  // ninety times, but no second
  CHECK(quick.add(1.2) == 0.01);
  StepTimes never(0);
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(never.add(i < 19 ? 0.01 : 100));
  }
  StepTimes two(5);
  two.add(1);
  two.add(3);
  CHECK(two.row() == Values{{"step_seconds", 2}, {"step_seconds_deviation", 1}, {"step_seconds_max", 3}});
}

TEST_CASE("heartbeat: the file is written anew after its seconds, and at once where something begins", "[metrics]") {
  const test::TempDir dir;
  double now = 0;
  Heartbeat heart(dir / "heartbeat.json", 30, [&now] { return now; });
  const auto step = [&dir] {
    const config::Node node = config::parse_json(read_file(dir / "heartbeat.json"), "heartbeat");
    return std::get<std::int64_t>(node.table()->find("step")->value);
  };
  heart.beat("steps", 1);
  CHECK(step() == 1);
  now = 29;
  heart.beat("steps", 2);
  CHECK(step() == 1);
  now = 30;
  heart.beat("steps", 3);
  CHECK(step() == 3);
  now = 31;
  heart.now("checkpoint", 4);
  CHECK(step() == 4);
  Heartbeat none(dir / "none.json", 0);
  none.now("start", 0);
  none.beat("steps", 1);
  CHECK_FALSE(fs::exists(dir / "none.json"));
}
