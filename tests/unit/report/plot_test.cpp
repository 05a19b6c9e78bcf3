#include "report/terminal/plot.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "core/text.h"
#include "core/wrap.h"
#include "report/read/columns.h"
#include "report/terminal/ticks.h"

using Catch::Matchers::Contains;
using kf::report::Axis;
using kf::report::plot;
using kf::report::PlotOptions;
using kf::report::PlotSeries;
using kf::report::tick_texts;
using kf::report::ticks;

namespace {

PlotSeries line(const std::string& name, double from, double to) {
  PlotSeries out{name, {}, {}};
  for (int i = 0; i <= 100; ++i) {
    out.x.push_back(i);
    out.y.push_back(from + (to - from) * i / 100);
  }
  return out;
}

PlotOptions small() {
  PlotOptions out;
  out.columns = 24;
  out.rows = 5;
  return out;
}

}  // namespace

TEST_CASE("report: a falling line is drawn in dots between its axes", "[report]") {
  CHECK(plot({line("a", 4, 0)}, small()) ==
        "4┤⠙⠲⠤⣀\n"
        " │    ⠉⠒⠤⣄⡀\n"
        "2┤        ⠉⠓⠲⢤⣀\n"
        " │            ⠈⠙⠒⠤⣀\n"
        "0┤                 ⠉⠒⠦⣄\n"
        " └┬───────────────────┬\n"
        "  0                  100\n"
        "⠒ a  last 0\n");
}

TEST_CASE("report: several series without colours are told apart by letters", "[report]") {
  const std::string text = plot({line("first", 0, 4), line("second", 4, 0)}, small());
  CHECK_THAT(text, Contains("a first  last 4\n") && Contains("b second  last 0\n") && !Contains("\x1b"));
  PlotOptions colours = small();
  colours.color = true;
  CHECK_THAT(plot({line("first", 0, 4), line("second", 4, 0)}, colours), Contains("\x1b[36m") && Contains("\x1b[33m"));
}

TEST_CASE("report: what cannot be drawn is said", "[report]") {
  PlotSeries series = line("a", 4, 1);
  series.y[7] = std::nan("");
  series.y[9] = std::numeric_limits<double>::infinity();
  series.y[11] = -1;
  series.y[13] = kf::report::gap();
  PlotOptions options = small();
  options.columns = 80;
  options.log_y = true;
  CHECK_THAT(plot({series}, options), Contains("a  last 1, 2 nan or infinite (first at step 7), 1 not above 0"));
  CHECK(plot({{"none", {}, {}}}, small()) == "⠒ none  nothing to draw\n");
  CHECK_THAT(plot({{"one", {5}, {2}}}, small()), Contains("one  last 2"));
}

TEST_CASE("report: the largest and the smallest numbers that there are can be drawn", "[report]") {
  constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const bool log : {false, true}) {
    PlotOptions options = small();
    options.log_x = options.log_y = log;
    CHECK_THAT(plot({{"wide", {1, 2, 9.3e18}, {log ? least : -most, 1, most}}}, options), Contains("wide  last 1.7977e+308\n"));
    CHECK_THAT(plot({{"narrow", {least, 2 * least}, {least, 2 * least}}}, options), Contains("narrow  last"));
  }
  CHECK(Axis{-most, most, false}.share(0) == 0.5);
  CHECK(Axis{least, most, true}.share(most) == 1);
}

TEST_CASE("report: no line of a plot is wider than it", "[report]") {
  for (std::size_t width = 20; width < 90; width += 7) {
    PlotOptions options = small();
    options.columns = width;
    for (const double scale : {1e-9, 0.1, 1.0, 1e6, 1e300}) {
      for (const std::string& row : kf::split(plot({line("a", 3 * scale, 17 * scale)}, options), '\n')) {
        CAPTURE(row, width);
        CHECK(kf::columns_of(row) <= width);
      }
    }
  }
}

TEST_CASE("report: ticks are round numbers", "[report]") {
  CHECK(ticks({0, 10, false}, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(tick_texts(ticks({0.0013, 0.0087, false}, 4)) == std::vector<std::string>{"0.002", "0.004", "0.006", "0.008"});
  CHECK(ticks({1e-5, 1e-2, true}, 8).size() == 4);
  CHECK(ticks({5, 5, false}, 3) == std::vector<double>{5});
  CHECK(tick_texts({15000, 20000}) == std::vector<std::string>{"15000", "20000"});
}
