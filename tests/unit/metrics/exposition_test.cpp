#include "metrics/prometheus/exposition.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace kf;
using Catch::Matchers::Contains;

TEST_CASE("prometheus: names are made plain, and numbers that would share one keep apart", "[trackers]") {
  const std::string text = exposition({{"loss", 1.5}, {"a/b", 2}, {"a.b", 3}, {"a_b", 4}}, {{"run", "a \"run\"\\\n"}, {"rank", "0"}});
  CHECK_THAT(text, Contains("# TYPE kf_loss gauge\nkf_loss{run=\"a \\\"run\\\"\\\\\\n\",rank=\"0\"} 1.5\n"));
  CHECK_THAT(text, Contains("# HELP kf_loss What is minimised"));
  CHECK_THAT(text, Contains("kf_a_b{run=\"a \\\"run\\\"\\\\\\n\",rank=\"0\",metric=\"a/b\"} 2\n"));
  CHECK_THAT(text, Contains(",metric=\"a.b\"} 3\n"));
  CHECK_THAT(text, Contains(",rank=\"0\"} 4\n"));
  CHECK(text.find("# TYPE kf_a_b gauge") == text.rfind("# TYPE kf_a_b gauge"));
}

TEST_CASE("prometheus: numbers that are not finite have their words", "[trackers]") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const std::string text = exposition({{"a", infinite}, {"b", -infinite}, {"c", std::numeric_limits<double>::quiet_NaN()}}, {});
  CHECK(text == "# TYPE kf_a gauge\nkf_a{} +Inf\n# TYPE kf_b gauge\nkf_b{} -Inf\n# TYPE kf_c gauge\nkf_c{} NaN\n");
}
