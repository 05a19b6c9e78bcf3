#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "core/error.h"
#include "support/temp_dir.h"
#include "sweep/proposer.h"
#include "sweep/store.h"
#include "unit/sweep/space.h"

#include <catch2/catch.hpp>

using namespace kf;
using namespace kf::sweep;
using namespace kf::sweep::test;
using config::Node;

namespace {

struct Fixture {
  Fixture() : store(file(), Database::Mode::create) {
    definition.space = {entry("a.x", Distribution::real(0, 1))};
    definition.seed = 5;
    store.open_study("toy", false);
  }
  fs::path file() const { return dir / "study.db"; }
  std::optional<Trial> claim(Store& in, std::int64_t limit, const Worker& worker = Worker::self()) {
    const std::unique_ptr<Proposer> source = make_proposer(definition);
    return in.claim(limit, worker, [&](const std::vector<Trial>& trials, std::int64_t number) { return source->next(trials, number); });
  }

  kf::test::TempDir dir;
  Definition definition;
  Store store;
};

Worker dead_worker() {
  Worker worker = Worker::self();
  worker.process.started = "1";
  return worker;
}

}  // namespace

TEST_CASE("sweep: a trial that ended once and again is read anew", "[sweep]") {
  Fixture f;
  const Trial trial = *f.claim(f.store, 1);
  f.store.finish(trial.id, TrialState::fail, std::nullopt, "once");
  CHECK(f.store.trials().at(0).text("error") == "once");
  Store other(f.file(), Database::Mode::existing);
  other.open_study();
  CHECK(other.retry_failed() == 1);
  CHECK(f.store.trials().at(0).state == TrialState::waiting);
  REQUIRE(f.claim(other, 1));
  other.report(trial.id, 3, 0.5, std::nullopt);
  other.finish(trial.id, TrialState::complete, 0.25);
  const Trial again = f.store.trials().at(0);
  CHECK(again.value == 0.25);
  CHECK(again.reports.at(3) == 0.5);
  CHECK(again.text("error").empty());
}

TEST_CASE("sweep: a relaxed store keeps the same, and others see it", "[sweep]") {
  Fixture f;
  f.store.relax();
  const Trial trial = *f.claim(f.store, 1);
  f.store.report(trial.id, 1, 2, std::nullopt);
  Store other(f.file(), Database::Mode::existing);
  other.open_study();
  CHECK(other.trials().at(0).reports.at(1) == 2);
  f.store.put_back(trial.id);
  CHECK(other.trials().at(0).state == TrialState::waiting);
  REQUIRE(f.claim(f.store, 1));
  other.relax(/*ends=*/true);
  other.finish(trial.id, TrialState::complete, 1);
  f.store.settle(trial.id);
  CHECK(f.store.trials().at(0).value == 1);
}

TEST_CASE("sweep: a trial keeps everything that was written", "[sweep]") {
  Fixture f;
  const Trial trial = *f.claim(f.store, 10);
  CHECK(trial.number == 0);
  CHECK(trial.state == TrialState::running);
  f.store.report(trial.id, 10, 2.5, std::nullopt);
  f.store.report(trial.id, 20, std::nan(""), std::nullopt);
  f.store.report(trial.id, 10, 2.25, std::nullopt);  // a resumed run reports a step again
  f.store.finish(trial.id, TrialState::complete, 0.1 + 0.2);
  f.store.finish(trial.id, TrialState::fail, std::nullopt, "too late");
  Store again(f.file(), Database::Mode::existing);
  again.open_study();
  CHECK(again.name() == "toy");
  const Trial read = again.trial(0);
  CHECK(read.state == TrialState::complete);
  CHECK(*read.value == 0.1 + 0.2);
  CHECK(read.reports.at(10) == 2.25);
  CHECK(std::isnan(read.reports.at(20)));
  CHECK(read.parameters[0].stored == trial.parameters[0].stored);
  CHECK(read.attributes.find("values")->table()->find("a.x")->value == Node(trial.parameters[0].stored).value);
  CHECK(read.text("error").empty());
  CHECK(*read.seconds() >= 0);
}

TEST_CASE("sweep: a complete trial has a number; infinity is one, nan is not", "[sweep]") {
  Fixture f;
  f.store.finish(f.claim(f.store, 10)->id, TrialState::complete, std::nan(""));
  f.store.finish(f.claim(f.store, 10)->id, TrialState::complete, INFINITY);
  const std::vector<Trial> trials = f.store.trials();
  CHECK(trials[0].state == TrialState::fail);
  CHECK_THAT(trials[0].text("error"), Catch::Contains("not a number"));
  CHECK(trials[1].state == TrialState::complete);
  CHECK(std::isinf(*trials[1].value));
}

TEST_CASE("sweep: eight workers on one file lose no trial, take none twice, and start at different points", "[sweep]") {
  // The second is what is taken on a disk that machines share.
  const std::string journal = GENERATE("wal", "rollback");
  ::setenv("KF_SWEEP_JOURNAL", journal.c_str(), 1);
  Fixture f;
  constexpr std::int64_t kTrials = 40;
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&f] {
      Store own(f.file(), Database::Mode::create);
      own.open_study("toy", false);
      while (const std::optional<Trial> trial = f.claim(own, kTrials)) {
        own.report(trial->id, 1, static_cast<double>(trial->number), AshaOptions{1, 4});
        own.finish(trial->id, TrialState::complete, static_cast<double>(trial->number));
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  const std::vector<Trial> trials = f.store.trials();
  REQUIRE(trials.size() == kTrials);
  std::set<double> points;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    CHECK(trials[i].number == static_cast<std::int64_t>(i));
    CHECK(trials[i].value == static_cast<double>(i));
    points.insert(trials[i].parameters[0].stored);
  }
  CHECK(points.size() == kTrials);
  CHECK(std::filesystem::exists(f.file().string() + "-wal") == (journal == "wal"));
  ::unsetenv("KF_SWEEP_JOURNAL");
}

TEST_CASE("sweep: who looks on sees the file as it was at one moment, also while trials are added", "[sweep]") {
  Fixture f;
  std::atomic<bool> done{false};
  std::thread worker([&] {
    Store own(f.file(), Database::Mode::existing);
    own.open_study();
    while (f.claim(own, 100)) {
    }
    done = true;
  });
  std::size_t seen = 0;
  while (!done) {
    const std::vector<Trial> trials = f.store.trials();
    CHECK(trials.size() >= seen);
    seen = trials.size();
    CHECK(std::all_of(trials.begin(), trials.end(), [](const Trial& t) { return t.parameters.size() == 1; }));
  }
  worker.join();
  CHECK(f.store.trials().size() == 100);
}

TEST_CASE("sweep: the trial of a worker that died goes on under its number, but not for ever", "[sweep]") {
  Fixture f;
  std::set<double> points;
  for (std::int64_t attempt = 1; attempt <= Store::kMaxAttempts; ++attempt) {
    const Trial trial = *f.claim(f.store, 1, dead_worker());
    CHECK(trial.number == 0);
    points.insert(trial.parameters[0].stored);
    CHECK(f.store.recover() == 1);
    CHECK(f.store.trial(0).state == (attempt < Store::kMaxAttempts ? TrialState::waiting : TrialState::fail));
  }
  CHECK(points.size() == 1);
  CHECK_THAT(f.store.trial(0).text("error"), Catch::Contains("died 5 times"));
  CHECK_FALSE(f.claim(f.store, 1));
  CHECK(f.store.retry_failed() == 1);
  CHECK(f.claim(f.store, 1));
}

TEST_CASE("sweep: a trial whose worker lives, or whose child does, is left alone", "[sweep]") {
  Fixture f;
  f.claim(f.store, 2);
  CHECK(f.store.recover() == 0);
  const Trial orphan = *f.claim(f.store, 2, dead_worker());
  f.store.set_trial_attribute(orphan.id, "process", Worker::self().to_node());
  CHECK(f.store.recover() == 0);
}

TEST_CASE("sweep: a worker on another machine is dead when its heart has not beaten for a minute", "[sweep]") {
  Fixture f;
  Worker elsewhere = Worker::self();
  elsewhere.machine = "elsewhere";
  const Trial trial = *f.claim(f.store, 1, elsewhere);
  CHECK(f.store.recover() == 0);
  Database raw(f.file(), Database::Mode::existing);
  raw.run("UPDATE trial_heartbeats SET heartbeat = datetime('now', '-61 seconds') WHERE trial_id = ?", {trial.id});
  f.store.beat({trial.id});
  CHECK(f.store.recover() == 0);
  raw.run("UPDATE trial_heartbeats SET heartbeat = datetime('now', '-61 seconds') WHERE trial_id = ?", {trial.id});
  CHECK(f.store.recover() == 1);
}

TEST_CASE("sweep: a trial that a signal killed is failed, goes back in line at the next start, and not for ever", "[sweep]") {
  Fixture f;
  for (std::int64_t attempt = 1; attempt <= Store::kMaxAttempts; ++attempt) {
    const Trial trial = *f.claim(f.store, 1);
    CHECK(trial.number == 0);
    f.store.finish_killed(trial.id, "killed by signal 9");
    CHECK(f.store.trial(0).state == TrialState::fail);
    CHECK(f.store.trial(0).text("error") == "killed by signal 9");
    CHECK(f.store.retry_killed() == (attempt < Store::kMaxAttempts ? 1 : 0));
  }
  f.store.retry_failed();
  f.store.finish(f.claim(f.store, 1)->id, TrialState::fail, std::nullopt, "its own fault");
  CHECK(f.store.retry_killed() == 0);
}

TEST_CASE("sweep: reports are cut by what other trials reached", "[sweep]") {
  Fixture f;
  std::vector<bool> cut;
  for (const double value : {4.0, 3.0, 5.0, 2.0, 2.5}) {
    cut.push_back(f.store.report(f.claim(f.store, 10)->id, 1, value, AshaOptions{1, 4}));
  }
  CHECK(cut == std::vector<bool>{false, false, true, false, true});
}

TEST_CASE("sweep: a file of another kind, and another study, are refused", "[sweep]") {
  Fixture f;
  Store other(f.file(), Database::Mode::create);
  CHECK_THROWS_AS(other.open_study("another", false), Error);
  f.dir.write("text.db", "this is no database, but a text that is longer than the header of one would be, by some words");
  CHECK_THROWS_AS(Store(f.dir / "text.db", Database::Mode::existing), Error);
}

TEST_CASE("sweep: a trial that was killed after it was cut is cut again, at the same step", "[sweep]") {
  Fixture f;
  const AshaOptions halving{1, 2};
  const auto cut = [&](const Trial& trial, std::int64_t step, double value) { return f.store.report(trial.id, step, value, halving, 8); };
  const Trial first = *f.claim(f.store, 10), second = *f.claim(f.store, 10);
  CHECK_FALSE(cut(first, 1, 1.0));
  CHECK_FALSE(cut(first, 2, 1.0));
  CHECK(cut(second, 1, 2.0));
  CHECK(f.store.cut_at(second.id) == 1);
  CHECK_FALSE(f.store.cut_at(first.id));
  f.store.put_back(second.id);  // its process died before it could end; another goes on from a checkpoint before the report, or behind it
  const Trial again = *f.claim(f.store, 10);
  REQUIRE(again.id == second.id);
  CHECK(cut(again, 1, 2.0));
  CHECK(cut(again, 4, 0.5));
  CHECK_FALSE(cut(again, 8, 0.5));  // a finished trial is not cut any more
  const Trial third = *f.claim(f.store, 10);
  CHECK_FALSE(f.store.report(third.id, 8, 9.0, halving, 8));
  CHECK_FALSE(f.store.cut_at(third.id));
}
