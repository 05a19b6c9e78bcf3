// H13, H14: the first and the last update of a schedule.

#include <catch2/catch.hpp>
#include <cmath>

#include "optim/schedules.h"
#include "support/tiny.h"

namespace kf::cases {
using namespace kf::test;
namespace {

std::vector<double> factors(const std::string& name, const config::SchedulerConfig& config, std::int64_t max_steps) {
  const auto schedule = make_native_schedule(name, config, max_steps);
  std::vector<double> out;
  for (std::int64_t step = 0; step < max_steps; ++step) {
    out.push_back(schedule->factor(step));
  }
  return out;
}

config::SchedulerConfig inclusive(std::int64_t warmup, double floor) {
  config::SchedulerConfig config;
  config.warmup_steps = warmup;
  config.min_lr_ratio = floor;
  config.endpoints = "inclusive";
  return config;
}

}  // namespace

TEST_CASE("schedule: inclusive endpoints give (s + 1)/W and the floor at the last update", "[cases][H13]") {
  const std::vector<double> expected{0.25, 0.5, 0.75, 1, 0.9397, 0.775, 0.55, 0.325, 0.1603, 0.1};
  const std::vector<double> actual = factors("cosine", inclusive(4, 0.1), 10);
  REQUIRE(actual.size() == expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    CAPTURE(s);
    CHECK(actual[s] == Approx(expected[s]).margin(5e-5));
  }
}

TEST_CASE("schedule: by default the first update of a warm-up has rate 0, as the reference has", "[cases][H13]") {
  config::SchedulerConfig config = inclusive(4, 0.1);
  config.endpoints = "exclusive";
  CHECK(factors("cosine", config, 10).front() == 0.0);
  CHECK(factors("none", config, 10).front() == 1.0);
}

TEST_CASE("schedule: the first inclusive update changes the weights", "[cases][H13]") {
  Bench bench(tiny_config());
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  const std::vector<at::Tensor> before = bench.masters();
  bench.step(data, 0, 1e-3 * factors("cosine", inclusive(4, 0.1), 10).front());
  CHECK_FALSE(bitwise_equal(bench.masters(), before));
}

TEST_CASE("schedule: every schedule ends at its floor, falls after its peak and stays inside its bounds", "[cases][H14]") {
  const std::string name = GENERATE("cosine", "linear", "wsd", "rex", "constant", "none");
  const std::string decay = GENERATE("cosine", "linear", "sqrt");
  const double floor = GENERATE(0.0, 0.1, 1.0);
  struct Shape {
    std::int64_t max_steps, warmup;
    std::optional<std::int64_t> decay_steps, stable;
  };
  const Shape shape = GENERATE(Shape{10, 4, {}, {}}, Shape{10, 0, {}, {}}, Shape{10, 10, {}, {}}, Shape{30, 5, 7, 4}, Shape{1, 0, {}, {}},
                               Shape{1, 1, {}, {}}, Shape{100, 20, {}, 30}, Shape{12, 3, 2, {}});
  CAPTURE(name, decay, floor, shape.max_steps, shape.warmup);
  config::SchedulerConfig config = inclusive(shape.warmup, floor);
  config.decay_steps = shape.decay_steps;
  config.stable_steps = shape.stable;
  config.wsd_decay_type = decay;
  const std::vector<double> rates = factors(name, config, shape.max_steps);

  const bool decays = name != "constant" && name != "none";
  const bool has_decay = shape.max_steps > shape.warmup;
  if (decays && has_decay) {
    CHECK(rates.back() == Approx(floor).margin(1e-12));
  } else {
    CHECK(rates.back() == 1.0);  // a warm-up that lasts the whole run ends at the peak
  }
  for (std::size_t s = 0; s < rates.size(); ++s) {
    CAPTURE(s);
    const bool warming = name != "none" && static_cast<std::int64_t>(s) + 1 < shape.warmup;
    CHECK(rates[s] <= 1.0);
    CHECK(rates[s] >= (warming ? 0.0 : floor - 1e-12));
    CHECK(std::isfinite(rates[s]));
    if (s > 0) {
      CHECK((warming ? rates[s] > rates[s - 1] : static_cast<std::int64_t>(s) < shape.warmup || rates[s] <= rates[s - 1] + 1e-12));
    }
  }
}

}  // namespace kf::cases
