#include <clocale>
#include <cmath>
#include <sstream>

#include "sweep/table.h"

#include <catch2/catch.hpp>

using namespace kf::sweep;

namespace {

Trial make(std::int64_t number, TrialState state, std::optional<double> value) {
  Trial trial;
  trial.number = number;
  trial.state = state;
  trial.value = value;
  trial.parameters = {{"optimizer.lr", Distribution::real(0, 1), 0.25}};
  return trial;
}

}  // namespace

TEST_CASE("sweep: piped, each trial that ends is one line, and earlier ones are not told again", "[sweep]") {
  std::ostringstream out;
  LiveView view(out, false, 0);
  std::vector<Trial> trials{make(0, TrialState::complete, 2.5)};
  view.update(trials);
  CHECK(out.str().empty());
  trials.push_back(make(1, TrialState::running, std::nullopt));
  view.update(trials);
  trials[1] = make(1, TrialState::pruned, 3.5);
  trials[1].reports[20] = 3.5;
  view.update(trials);
  view.update(trials);
  CHECK(out.str() == "trial 1: pruned 3.5 at step 20  optimizer.lr=0.25\n");
}

TEST_CASE("sweep: on a terminal the block is drawn over the one before, cut to the width", "[sweep]") {
  std::ostringstream out;
  LiveView view(out, false, 30);
  const std::vector<Trial> trials{make(0, TrialState::complete, 2.5), make(1, TrialState::running, std::nullopt)};
  view.update(trials);
  CHECK_THAT(out.str(), Catch::Contains("2 trials: 1 complete, 1 runnin\n") && !Catch::Contains("\x1b[4A"));
  view.update(trials);
  CHECK_THAT(out.str(), Catch::Contains("\x1b[4A"));
}

TEST_CASE("sweep: the table shows the best first, and says what it leaves out", "[sweep]") {
  const std::vector<Trial> trials{make(0, TrialState::fail, std::nullopt), make(1, TrialState::complete, 3),
                                  make(2, TrialState::complete, 2)};
  const std::string table = trials_table(trials, false);
  CHECK(table.find("    2  complete") < table.find("    1  complete"));
  CHECK(table.find("    1  complete") < table.find("    0  fail"));
  CHECK(trials_table(trials, true).find("    1  complete") < trials_table(trials, true).find("    2  complete"));
  CHECK_THAT(trials_table(trials, false, 1), Catch::Contains("... and 2 more"));
}

TEST_CASE("sweep: numbers and times of tables do not depend on the locale of the C library", "[sweep]") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool other = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8"}) {
    other = other || std::setlocale(LC_ALL, name) != nullptr;
  }
  Trial trial = make(0, TrialState::complete, 2.5);
  trial.started = "2026-01-31 12:00:00.250000";
  trial.completed = "2026-01-31 12:01:01.750000";
  const std::string number = short_number(0.00123456789), large = short_number(1.5e20);
  const std::optional<double> seconds = trial.seconds();
  std::setlocale(LC_ALL, before.c_str());
  CHECK(number == "0.00123457");
  CHECK(large == "1.5e+20");
  CHECK(short_number(-std::nan("")) == "-nan");
  CHECK(seconds == 61.5);
  if (!other) {
    WARN("no locale with a decimal comma is installed: only the C locale was tried");
  }
}
