#include <cmath>
#include <map>

#include "sweep/proposer.h"
#include "sweep/tpe.h"
#include "unit/sweep/space.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;
using namespace kf::sweep::test;
using config::Node;

namespace {

Definition two_numbers(Method method, std::uint64_t seed) {
  Definition definition;
  definition.method = method;
  definition.seed = seed;
  definition.space = {entry("a.x", Distribution::real(-5, 5)), entry("a.y", Distribution::real(-5, 5))};
  return definition;
}

double at(const Draw& draw, const char* key) { return std::get<double>(draw.values.find(key)->value); }

/// The least of a quadratic with its minimum at (1, -2), over `count` trials one after the other.
double least(Method method, std::uint64_t seed, std::int64_t count) {
  const Definition definition = two_numbers(method, seed);
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  std::vector<Trial> trials;
  double best = INFINITY;
  for (std::int64_t number = 0; number < count; ++number) {
    const Draw draw = *source->next(trials, number);
    const double x = at(draw, "a.x") - 1;
    const double y = at(draw, "a.y") + 2;
    trials.push_back(finished(number, draw, x * x + y * y));
    best = std::min(best, *trials.back().value);
  }
  return best;
}

}  // namespace

TEST_CASE("sweep: TPE comes nearer to the minimum of a quadratic than random draws", "[sweep]") {
  int better = 0;
  double tpe_sum = 0;
  double random_sum = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const double tpe = least(Method::tpe, seed, 60);
    const double random = least(Method::random, seed, 60);
    better += tpe < random ? 1 : 0;
    tpe_sum += std::log(tpe);
    random_sum += std::log(random);
  }
  CHECK(better >= 8);
  CHECK(tpe_sum / 10 < random_sum / 10 - 1);  // by a factor of e, in the middle
}

TEST_CASE("sweep: TPE finds the best of a choice and of a logarithm inside a group", "[sweep]") {
  Definition definition;
  definition.method = Method::tpe;
  definition.seed = 3;
  definition.space = {
      groups("choice 1", {{entry("o.lr", Distribution::real(1e-5, 1, 0, true)), constant("o.name", Node(std::string("a")))},
                          {entry("o.lr", Distribution::real(1e-3, 10, 0, true)), constant("o.name", Node(std::string("b")))}}),
      entry("t.n", Distribution::integer(1, 64))};
  const std::unique_ptr<Proposer> source = make_proposer(definition);
  std::vector<Trial> trials;
  std::map<std::string, int> chosen;
  for (std::int64_t number = 0; number < 80; ++number) {
    const Draw draw = *source->next(trials, number);
    const bool b = std::get<std::string>(draw.values.find("o.name")->value) == "b";
    const double off = std::log10(at(draw, "o.lr")) + (b ? 1 : 3);  // best at 0.1 with b
    const auto n = static_cast<double>(std::get<std::int64_t>(draw.values.find("t.n")->value));
    trials.push_back(finished(number, draw, off * off + (b ? 0 : 1) + std::abs(n - 20) / 20));
    if (number >= 40) {
      ++chosen[b ? "b" : "a"];
    }
  }
  const Trial* best = best_of(trials, false);
  CHECK(*best->value < 0.2);
  CHECK(chosen["b"] > 2 * chosen["a"]);
}

TEST_CASE("sweep: the same seed gives the same trials, another one others", "[sweep]") {
  for (const Method method : {Method::random, Method::tpe, Method::asha}) {
    const Definition first = two_numbers(method, 7);
    const Definition second = two_numbers(method, 7);
    const Definition other = two_numbers(method, 8);
    std::vector<Trial> trials;
    for (std::int64_t number = 0; number < 20; ++number) {
      const Draw draw = *make_proposer(first)->next(trials, number);
      CHECK(at(draw, "a.x") == at(*make_proposer(second)->next(trials, number), "a.x"));
      CHECK(at(draw, "a.x") != at(*make_proposer(other)->next(trials, number), "a.x"));
      trials.push_back(finished(number, draw, at(draw, "a.x")));
    }
  }
}

TEST_CASE("sweep: four TPE workers that start together start at four different points", "[sweep]") {
  const Definition definition = two_numbers(Method::tpe, 1);
  std::vector<Trial> running;
  for (std::int64_t number = 0; number < 4; ++number) {
    Trial trial = finished(number, *make_proposer(definition)->next(running, number), 0);
    trial.state = TrialState::running;
    trial.value.reset();
    for (const Trial& other : running) {
      CHECK(other.parameters[0].stored != trial.parameters[0].stored);
    }
    running.push_back(std::move(trial));
  }
}

TEST_CASE("sweep: draws fill their range, ends included", "[sweep]") {
  Random random(1, 2);
  std::map<double, int> counts;
  for (int i = 0; i < 3000; ++i) {
    counts[random.draw(Distribution::integer(1, 3))]++;
    const double x = random.draw(Distribution::real(1e-4, 1e-2, 0, true));
    CHECK((x >= 1e-4 && x <= 1e-2));
    counts[x < 1e-3 ? -1.0 : -2.0]++;
  }
  CHECK(counts.size() == 5);
  for (const double value : {1.0, 2.0, 3.0}) {
    CHECK(counts[value] == Approx(1000).margin(100));  // three standard deviations
  }
  CHECK(counts[-1] == Approx(1500).margin(100));  // half of the logarithms
}

TEST_CASE("sweep: the normal quantile inverts the distribution", "[sweep]") {
  for (const double p : {1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.9999}) {
    CHECK(normal_cdf(normal_quantile(p)) == Approx(p).epsilon(1e-10));
  }
  CHECK(log_normal_mass(-1, 1) == Approx(std::log(0.6826894921370859)));
  CHECK(log_normal_mass(9, 10) == Approx(log_normal_mass(-10, -9)));
}
