#include <set>

#include "config/json.h"
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
