#include "report/page/importance.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

using namespace kf;
using report::Importance;
using report::importance_of;
using sweep::Distribution;
using sweep::Trial;
using sweep::TrialState;

namespace {

/// Trials of an objective that follows "a" strongly, "c" (a choice) a little, and "b" not at all.
std::vector<Trial> some_trials(int count, double outlier = 0) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Trial> out;
  for (int i = 0; i < count; ++i) {
    const double a = uniform(random);
    const double b = uniform(random);
    const auto c = static_cast<double>(random() % 3);
    Trial trial;
    trial.number = i;
    trial.state = TrialState::complete;
    trial.value = std::abs(a - 0.3) + 0.05 * c + 0.02 * uniform(random);
    trial.parameters = {
        {"a", Distribution::real(0, 1), a},
        {"b", Distribution::real(0, 1), b},
        {"c", Distribution::choice({config::Node(std::string("x")), config::Node(std::string("y")), config::Node(std::string("z"))}), c},
        {"still", Distribution::real(1, 1), 1}};
    out.push_back(trial);
  }
  if (outlier > 0) {
    out.front().value = outlier;
  }
  return out;
}

}  // namespace

TEST_CASE("importance: settings are ranked by what they explain, also along a curve that is not monotone", "[report]") {
  const std::vector<Importance> found = importance_of(some_trials(200));
  REQUIRE(found.size() == 3);  // one that never varied is none
  CHECK(found[0].name == "a");
  CHECK(found[0].share > 0.6);
  CHECK(found[1].share < 0.1);
  CHECK(found[2].share < found[0].share);
  CHECK(found[2].share > 0);
}

TEST_CASE("importance: one trial that diverged does not change it", "[report]") {
  const std::vector<Importance> without = importance_of(some_trials(200));
  const std::vector<Importance> with = importance_of(some_trials(200, 1e30));
  for (std::size_t i = 0; i < without.size(); ++i) {
    CHECK(with[i].share == Approx(without[i].share).margin(0.05));
  }
}

TEST_CASE("importance: a few trials tell nothing, and those without a value are none", "[report]") {
  CHECK(importance_of({}).empty());
  CHECK(importance_of(some_trials(5)).empty());
  std::vector<Trial> trials = some_trials(8);
  trials[0].value.reset();
  trials[1].state = TrialState::running;
  trials[2].value = std::nan("");
  CHECK(importance_of(trials).empty());
}
