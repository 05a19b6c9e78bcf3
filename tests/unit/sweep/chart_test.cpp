#include <cmath>

#include "support/temp_dir.h"
#include "sweep/chart.h"
#include "sweep/files.h"
#include "sweep/svg.h"

#include <catch2/catch.hpp>

using namespace kf::sweep;
using kf::config::Node;

namespace {

std::vector<Trial> some_trials() {
  std::vector<Trial> trials;
  for (std::int64_t i = 0; i < 6; ++i) {
    Trial trial;
    trial.number = i;
    trial.state = i == 4 ? TrialState::pruned : TrialState::complete;
    trial.value = i == 5 ? 1e6 : 3 + 0.1 * static_cast<double>((i - 2) * (i - 2));
    trial.parameters = {
        {"optimizer.lr", Distribution::real(1e-5, 1, 0, true), std::pow(10, static_cast<double>(i - 5))},
        {"optimizer.name", Distribution::choice({Node(std::string("adamw")), Node(std::string("li,on"))}), i % 2 == 0 ? 0.0 : 1.0}};
    trial.started = "2026-01-31 12:00:00.000000";
    trial.completed = "2026-01-31 12:00:01.500000";
    trials.push_back(std::move(trial));
  }
  Trial failed;
  failed.number = 6;
  failed.state = TrialState::fail;
  failed.attributes["error"] = Node(std::string("it said \"no\""));
  trials.push_back(std::move(failed));
  return trials;
}

}  // namespace

TEST_CASE("sweep: a plot has a logarithmic axis, the best trial marked, and diverged ones at the edge", "[sweep]") {
  const std::vector<Chart> all = charts(some_trials(), false);
  REQUIRE(all.size() == 2);
  CHECK(all[0].log);
  CHECK(all[0].across(1e-3) == Approx(0.4));
  CHECK(all[0].y_high < 10);
  const std::string text = text_plot(all[0], "eval.loss");
  CHECK_THAT(text, Catch::Contains("eval.loss against optimizer.lr") && Catch::Contains("(log)") && Catch::Contains("*") &&
                       Catch::Contains("^") && Catch::Contains("."));
  CHECK_THAT(text_plot(all[1], "eval.loss"), Catch::Contains("adamw |") && Catch::Contains("li,on |"));
}

TEST_CASE("sweep: an SVG has a circle a trial and ticks at powers of ten", "[sweep]") {
  const std::string svg = to_svg(charts(some_trials(), false)[0], "a < b");
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) {
    ++circles;
  }
  CHECK(circles == 6);
  CHECK_THAT(svg, Catch::Contains(">0.001<") && Catch::Contains("a &lt; b") && Catch::Contains("trial 2: 3<"));
}

TEST_CASE("sweep: trials.csv quotes what needs it and keeps every digit", "[sweep]") {
  const std::string csv = csv_text(some_trials());
  CHECK_THAT(csv, Catch::StartsWith("number,state,value,optimizer.lr,optimizer.name,started,seconds,error\n"));
  CHECK_THAT(csv, Catch::Contains("1,COMPLETE,3.1,") && Catch::Contains("\"li,on\"") &&
                      Catch::Contains("6,FAIL,,,,,,\"it said \"\"no\"\"\"\n") && Catch::Contains(",1.500,"));
}

TEST_CASE("sweep: plots are files named after their parameters", "[sweep]") {
  const kf::test::TempDir dir;
  CHECK(write_plots(dir.path(), some_trials(), false, "eval.loss").size() == 2);
  CHECK(std::filesystem::exists(dir / "plots/optimizer.lr.svg"));
}
