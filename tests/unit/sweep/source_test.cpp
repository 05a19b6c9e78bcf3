#include "core/error.h"
#include "sweep/proposer.h"
#include "unit/sweep/space.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;
using namespace kf::sweep::test;
using config::Node;
using config::Table;

namespace {

std::int64_t integer(const Table& values, const char* key) { return std::get<std::int64_t>(values.find(key)->value); }

}  // namespace

TEST_CASE("sweep: adjust changes and rejects; random draws go on until one is accepted", "[sweep]") {
  Definition definition;
  definition.space = {entry("a.x", Distribution::integer(1, 10))};
  definition.adjust = [](Table& drawn) {
    drawn["a.y"] = Node(10 * integer(drawn, "a.x"));
    return integer(drawn, "a.x") > 7;
  };
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  for (std::int64_t number = 0; number < 20; ++number) {
    const Draw draw = *source->next({}, number);
    CHECK(integer(draw.values, "a.x") > 7);
    CHECK(integer(draw.values, "a.y") == 10 * integer(draw.values, "a.x"));
    CHECK(draw.parameters.size() == 1);
  }
  definition.adjust = [](Table&) { return false; };
  CHECK_THROWS_WITH(make_proposer(definition)->next({}, 0), Catch::Contains("adjust rejected 1000 draws"));
}

TEST_CASE("sweep: a grid leaves out the points that adjust rejects", "[sweep]") {
  Definition definition;
  definition.method = Method::grid;
  definition.space = {values("a.x", numbers(4)), values("a.y", numbers(4))};
  definition.adjust = [](Table& drawn) { return integer(drawn, "a.x") != integer(drawn, "a.y"); };
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  CHECK(source->count() == 12);
  CHECK(source->next({}, 11));
  CHECK_FALSE(source->next({}, 12));
}

TEST_CASE("sweep: a list is run as it stands, its columns are parameters", "[sweep]") {
  Definition definition;
  definition.method = Method::list;
  for (const double lr : {1e-3, 2e-3, 5e-3}) {
    Table row;
    row["optimizer.lr"] = Node(lr);
    row["optimizer.name"] = Node(std::string(lr > 4e-3 ? "lion" : "adamw"));
    row["optimizer.betas"] = Node(config::Array{Node(0.9), Node(lr)});
    definition.list.push_back(std::move(row));
  }
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  CHECK(source->count() == 3);
  const Draw draw = *source->next({}, 2);
  CHECK(std::get<double>(draw.values.find("optimizer.lr")->value) == 5e-3);
  for (const Parameter& p : draw.parameters) {
    CHECK(p.distribution.contains(p.stored));
    if (p.name == "optimizer.name") {
      CHECK(p.value() == Node(std::string("lion")));
      CHECK(p.distribution.choices.size() == 2);
    } else if (p.name == "optimizer.betas") {
      CHECK(p.value() == Node(std::string("[0.9, 0.005]")));
    } else {
      CHECK(p.stored == 5e-3);
      CHECK(p.distribution.low == 1e-3);
    }
  }
}

TEST_CASE("sweep: identities differ by what differs", "[sweep]") {
  Definition definition;
  definition.space = {entry("a.x", Distribution::integer(1, 10))};
  const Table before = identity(definition);
  definition.parallel = 4;
  definition.trials = 100;
  CHECK(difference(before, identity(definition)).empty());
  definition.space = {entry("a.x", Distribution::integer(1, 12)), entry("a.y", Distribution::real(0, 1))};
  definition.seed = 2;
  const std::string text = difference(before, identity(definition));
  CHECK_THAT(text, Catch::Contains("a.x: 'randint(1, 10)' then, 'randint(1, 12)' now") && Catch::Contains("a.y: nothing then") &&
                       Catch::Contains("seed: 0 then, 2 now"));
}
