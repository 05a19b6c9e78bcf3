#include <set>

#include "config/tree/json.h"
#include "core/error.h"
#include "sweep/grid.h"
#include "unit/sweep/space.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;
using namespace kf::sweep::test;
using config::Node;

namespace {

std::set<std::string> texts(const std::vector<Draw>& draws) {
  std::set<std::string> out;
  for (const Draw& draw : draws) {
    out.insert(config::to_json(Node(draw.values)));
  }
  return out;
}

}  // namespace

TEST_CASE("sweep: a nested grid of 3*2*2*3*3 has 108 different trials", "[sweep]") {
  const std::vector<Entry> space{values("a.x", numbers(3)), values("b.y", numbers(2)), values("c.z", numbers(2)), values("d.u", numbers(3)),
                                 values("e.v", numbers(3))};
  const std::vector<Draw> points = grid_points(space);
  CHECK(points.size() == 108);
  CHECK(texts(points).size() == 108);
}

TEST_CASE("sweep: a grid goes into the chosen group only, and asks functions at every point", "[sweep]") {
  const Computed twice = [](const config::Table& drawn) -> std::optional<Entry> {
    const Node* x = drawn.find("a.x");
    return x != nullptr ? std::optional(constant("a.double", Node(2 * std::get<std::int64_t>(x->value)))) : std::nullopt;
  };
  const std::vector<Entry> space{groups("choice 1", {{values("a.x", numbers(3))}, {values("b.y", numbers(2)), values("b.z", numbers(2))}}),
                                 Entry{"a.double", "a.double", {}, twice}};
  const std::vector<Draw> points = grid_points(space);
  CHECK(points.size() == 3 + 2 * 2);
  CHECK(texts(points).size() == 7);
  for (const Draw& point : points) {
    const Node* x = point.values.find("a.x");
    CHECK((x != nullptr) == (point.values.find("a.double") != nullptr));
    CHECK((x != nullptr) == (point.values.find("b.y") == nullptr));
    if (x != nullptr) {
      CHECK(std::get<std::int64_t>(point.values.find("a.double")->value) == 2 * std::get<std::int64_t>(x->value));
    }
  }
}

TEST_CASE("sweep: steps end where decimals say, at the doubles that optuna 5 gives, never beyond the bounds", "[sweep]") {
  struct Quantised {
    double low, high, step, last;
    std::vector<double> values;
  };
  // optuna 5.0.0: FloatDistribution(low, high, step=step).high, and what its samplers make of low + k step.
  const Quantised c = GENERATE(values<Quantised>({
      {0.1, 0.3, 0.1, 0.3, {0.1, 0.2, 0.3}},
      {0.1, 0.35, 0.1, 0.3, {0.1, 0.2, 0.3}},
      {0.1, 0.3, 0.7, 0.1, {0.1}},
      {0, 0.5, 0.1, 0.5, {0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5}},
      {-0.3, 0.3, 0.1, 0.3, {-0.3, -0.19999999999999998, -0.09999999999999998, 5.551115123125783e-17, 0.10000000000000003, 0.2, 0.3}},
      {-1, -0.1, 0.3, -0.1, {-1, -0.7, -0.4, -0.10000000000000009}},
      {0, 0.87, 0.29, 0.87, {0, 0.29, 0.58, 0.8699999999999999}},
      {1e-9, 1, 0.25, 0.750000001, {1e-9, 0.250000001, 0.500000001, 0.750000001}},
      {0.0001, 0.0003, 0.0001, 0.0003, {0.0001, 0.0002, 0.0003}},
      {2.5, 20, 7.3, 17.1, {2.5, 9.8, 17.1}},
  }));
  CAPTURE(c.low, c.high, c.step);
  const Distribution d = Distribution::real(c.low, c.high, c.step);
  CHECK(d.high == c.last);
  REQUIRE(d.count() == static_cast<std::int64_t>(c.values.size()));
  for (std::size_t i = 0; i < c.values.size(); ++i) {
    CHECK(d.at(static_cast<std::int64_t>(i)) == c.values[i]);
    CHECK(d.contains(c.values[i]));
    CHECK(d.nearest(c.values[i] + 0.4 * c.step) == c.values[i]);
    CHECK(d.nearest(c.values[i] - 0.4 * c.step) == c.values[i]);
  }
  CHECK(d.nearest(c.high + 5 * c.step) == c.values.back());  // where a sampler's edge lies outside
  CHECK(d.nearest(c.low - 5 * c.step) == c.values.front());
  CHECK(Distribution::from_json(d.to_json()) == d);
  CHECK(*Distribution::from_json(d.to_json()).count() == *d.count());
}

TEST_CASE("sweep: bounds far apart, large integers and steps of them are counted without decimals or exactly", "[sweep]") {
  CHECK(Distribution::real(1e-300, 1e300, 1e299).high <= 1e300);
  CHECK(*Distribution::real(-1e300, 1e300, 1e300).count() == 3);
  CHECK(Distribution::integer(1, 1'000'000'000'003, 7).high == 1'000'000'000'000.0);
  CHECK(*Distribution::integer(1, 1'000'000'000'003, 7).count() == 142'857'142'858);
  const Distribution logs = Distribution::integer(1, 1000, 1, true);
  CHECK(logs.nearest(1000.49) == 1000);
  CHECK(logs.nearest(0.51) == 1);
}

TEST_CASE("sweep: a grid counts steps and integers, and refuses what has no end of values", "[sweep]") {
  CHECK(grid_points({entry("a.x", Distribution::real(0, 1, 0.25))}).size() == 5);
  CHECK(grid_points({entry("a.x", Distribution::real(0, 0.3, 0.1))}).size() == 4);  // 0.3 / 0.1 is less than 3 in doubles
  CHECK(grid_points({entry("a.x", Distribution::integer(1, 10, 3))}).size() == 4);
  CHECK_THROWS_WITH(grid_points({entry("optimizer.lr", Distribution::real(1e-4, 1e-2, 0, true))}),
                    Catch::Contains("'optimizer.lr' is loguniform(0.0001, 0.01)") && Catch::Contains("kf.choice"));
  CHECK_THROWS_WITH(grid_points({entry("a.x", Distribution::integer(1, 1000)), entry("a.y", Distribution::integer(1, 1000))}),
                    Catch::Contains("more than 100000 points"));
}

TEST_CASE("sweep: a distribution is the same after its way through Optuna's text", "[sweep]") {
  for (const Distribution& d : {Distribution::real(1e-4, 3e-2, 0, true), Distribution::real(0, 1, 0.1), Distribution::real(-1, 1),
                                Distribution::integer(1, 1000), Distribution::integer(2, 64, 2), Distribution::integer(1, 4096, 1, true),
                                Distribution::choice({Node(std::string("adamw")), Node(std::int64_t{32}), Node(true), Node(0.5)})}) {
    INFO(d.to_json());
    CHECK(Distribution::from_json(d.to_json()) == d);
  }
  CHECK(Distribution::real(1e-4, 0.01, 0, true).to_json() ==
        R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0001, "high": 0.01, "log": true}})");
}

TEST_CASE("sweep: bounds that no step reaches come nearer", "[sweep]") {
  CHECK(Distribution::integer(1, 10, 4).high == 9);
  CHECK(Distribution::real(0, 1, 0.3).high == Approx(0.9));
}
