// Runs as the commands runs, plot, compare and tail show them.

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/text.h"
#include "core/wrap.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::test::Finished;
using kf::test::Options;
using kf::test::Process;
using kf::test::Toy;
using nlohmann::json;

namespace {

/// Two short runs, made once.
const Toy& two_runs() {
  static const Toy toy;
  static const bool made = [] {
    REQUIRE(toy.train({"--run.name=one", "--train.max_steps=6"}).status == 0);
    REQUIRE(toy.train({"--run.name=two", "--train.max_steps=4", "--optimizer.lr=1e-2"}).status == 0);
    return true;
  }();
  CHECK(made);
  return toy;
}

}  // namespace

TEST_CASE("runs: every run has a line, and all that is known as JSON", "[looking]") {
  const Toy& toy = two_runs();
  const Finished table = toy.host({"runs"});
  INFO(table.out << table.err);
  CHECK(table.status == 0);
  CHECK_THAT(table.out, Contains("run  state     step") && Contains("one  finished   6/6") && Contains("two  finished   4/4"));
  CHECK_THAT(table.out, !Contains("\x1b"));

  const json all = json::parse(toy.host({"runs", "--json"}).out);
  REQUIRE(all["runs"].size() == 2);
  CHECK(all["runs"][0]["name"] == "one");
  CHECK(all["runs"][0]["folder"] == "runs/one");
  CHECK(all["runs"][0]["step"] == 6);
  CHECK(all["runs"][0]["loss"].is_number());
  CHECK(all["runs"][0]["eval_loss"].is_number());
  CHECK(all["unreadable"].empty());
  CHECK(json::parse(toy.host({"runs", "--json", "--last", "1"}).out)["runs"][0]["name"] == "two");
  CHECK(json::parse(toy.host({"runs", "--json", "--state", "failed"}).out)["runs"].empty());
  CHECK_THAT(toy.host({"runs", "runs/one"}).out, Contains("one  finished"));
  CHECK(toy.host({"runs", "text"}).out == "no runs in text\n");
  CHECK_THAT(toy.host({"runs", "--state", "odd"}).err, Contains("'odd' is none of running, "));
  CHECK_THAT(toy.host({"runs", "nowhere"}).err, Contains("nowhere is no folder"));
}

TEST_CASE("runs: without a folder of runs there are none, and names cannot steer the terminal", "[looking]") {
  const Toy toy;
  CHECK(toy.host({"runs"}).out == "no runs in runs\n");
  toy.write("runs/a\x1b[2J b/run.json", "{}");
  toy.write("runs/c\xff/run.json", "{}");
  const Finished table = toy.host({"runs"});
  CHECK_THAT(table.out, Contains("a\\x1b[2J b") && Contains("c\\xff") && !Contains("\x1b"));
  CHECK(json::parse(toy.host({"runs", "--json"}).out)["runs"].size() == 2);
}

TEST_CASE("plot: curves of runs, told apart without colours", "[looking]") {
  const Toy& toy = two_runs();
  const Finished one = toy.host({"plot", "one"});
  INFO(one.out << one.err);
  CHECK(one.status == 0);
  CHECK_THAT(one.out, Contains("loss by step\n") && Contains("runs/one  last "));
  const Finished both =
      toy.host({"plot", "one", "runs/two", "--metric", "loss", "--metric", "eval.loss", "--width", "40", "--height", "6"});
  INFO(both.out << both.err);
  CHECK_THAT(both.out, Contains("a runs/one loss") && Contains("d runs/two eval.loss"));
  for (const std::string& line : kf::split(both.out, '\n')) {
    CHECK(kf::columns_of(line) <= 40);
  }
  CHECK(toy.host({"plot", "one", "--x", "tokens", "--log-x", "--log-y", "--from", "100"}).status == 0);
  CHECK_THAT(toy.host({"plot", "one", "--metric", "los"}).err, Contains("no number 'los'") && Contains("did you mean 'loss'?"));
  CHECK_THAT(toy.host({"plot", "onne"}).err, Contains("onne is no folder of a run") && Contains("did you mean runs/one?"));
}

TEST_CASE("plot: a number that only some of the runs have is drawn of these", "[looking]") {
  const Toy toy;
  toy.write("runs/early/run.json", "{}");
  toy.write("runs/early/metrics.jsonl", "{\"step\": 1, \"loss\": 1.0}\n");
  toy.write("runs/late/run.json", "{}");
  toy.write("runs/late/metrics.jsonl", "{\"step\": 1, \"loss\": 1.0}\n{\"step\": 1, \"eval\": {\"loss\": 2.5}}\n");
  const Finished done = toy.host({"plot", "early", "late", "--metric", "loss", "--metric", "eval.loss"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("runs/early eval.loss  nothing to draw") && Contains("runs/late eval.loss  last 2.5"));
  CHECK_THAT(toy.host({"plot", "early", "late", "--metric", "eval.los"}).err, Contains("no number 'eval.los'"));
}

TEST_CASE("looking: odd words are told as they are", "[looking]") {
  const Toy toy;
  toy.write("runs/x/run.json", "{\"starts\": [{\"step\": 0}]}");
  toy.write("runs/x/metrics.jsonl", "{\"step\": 1, \"loss\": 1.0}\n");
  toy.write("runs/y/run.json", "{}");
  toy.write("runs/y/job.toml", "[optimizer]\nlr = 0.5\n");
  const auto told = [&](const std::vector<std::string>& words) {
    const Finished done = toy.host(words);
    INFO(done.out << done.err);
    CHECK(done.status == 2);
    return done.err;
  };
  CHECK_THAT(told({"bundle", "x", "none/x.tar.gz"}), Contains("none/x.tar.gz cannot be written: none is no folder"));
  CHECK_THAT(told({"report", "x", "-o", ""}), Contains("-o: the name of a file must follow"));
  CHECK_THAT(told({"reproduce", "x", "--dir", ""}), Contains("--dir: the name of a new folder must follow"));
  CHECK_THAT(told({"profile", "toy.toml", "--out", ""}), Contains("--out: the name of a folder must follow"));
  CHECK_THAT(told({"plot", ""}), Contains("\"\" is no folder of a run") && !Contains("did you mean"));
  CHECK_THAT(told({"tail", "."}), !Contains("did you mean"));
  const Finished compared = toy.host({"compare", "x", "y"});
  CHECK(compared.status == 0);
  CHECK_THAT(compared.err, Contains("runs/x/job.toml"));
  CHECK_THAT(compared.out, Contains("optimizer.lr") && Contains("0.5"));
}

TEST_CASE("plot: rows that are none are told and passed over", "[looking]") {
  const Toy toy;
  toy.write("runs/x/run.json", "{}");
  toy.write("runs/x/metrics.jsonl", "{\"step\": 1, \"loss\": 1.0}\nbroken\n{\"step\": 2, \"loss\": 2.0}\n{\"step\": 3, \"lo");
  const Finished done = toy.host({"plot", "x"});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("1 lines of metrics.jsonl are no rows; the first is line 2"));
  CHECK_THAT(done.out, Contains("last 2"));
  toy.write("runs/y/run.json", "{}");
  CHECK_THAT(toy.host({"plot", "y"}).err, Contains("has no rows yet"));
}

TEST_CASE("compare: what differs stands side by side", "[looking]") {
  const Toy& toy = two_runs();
  const Finished done = toy.host({"compare", "one", "two"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("settings         runs/one  runs/two\n") && Contains("optimizer.lr     0.003     0.01\n") &&
                           Contains("train.max_steps  6         4\n"));
  CHECK_THAT(done.out, Contains("loss at step 4") && Contains("best eval loss") && Contains("the environments are alike"));
  CHECK_THAT(done.out, !Contains("optimizer.name") && !Contains("run.name"));
  CHECK_THAT(toy.host({"compare", "one", "two", "--all"}).out, Contains("optimizer.name") && Contains("torch"));
  CHECK_THAT(toy.host({"compare", "one", "one"}).out, Contains("the settings are alike") && Contains("the results are alike"));
  CHECK(toy.host({"compare", "one"}).status == 2);
}

TEST_CASE("compare: programs get the same as JSON", "[looking]") {
  const Toy& toy = two_runs();
  const Finished done = toy.host({"compare", "one", "two", "--json"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  const json all = json::parse(done.out);
  CHECK(all["runs"] == json({"runs/one", "runs/two"}));
  CHECK(all["settings"]["optimizer.lr"] == json({0.003, 0.01}));
  CHECK(all["settings"]["train.max_steps"] == json({6, 4}));
  CHECK_FALSE(all["settings"].contains("optimizer.name"));
  CHECK(all["results"]["loss_at_step_4"].size() == 2);
  CHECK(all["results"]["loss"][0].is_number());
  CHECK(all["results"]["best_eval_loss"][1]["step"].is_number());
  CHECK(all["environments"].empty());
  const json alike = json::parse(toy.host({"compare", "one", "one", "--all", "--json"}).out);
  CHECK(alike["settings"]["optimizer.name"].size() == 2);
  CHECK(alike["environments"].size() > 3);
}

TEST_CASE("tail: the last rows of a run that has ended, and how it ended", "[looking]") {
  const Toy& toy = two_runs();
  const Finished done = toy.host({"tail", "one", "--rows", "3"});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains(" step     loss    ppl") && Contains("\n    6 ") && Contains("runs/one: finished at step 6\n") &&
                           !Contains("\n    3 "));
  toy.write("runs/gone/run.json", "{\"starts\": [{\"step\": 0, \"end\": \"x\", \"status\": \"failed\", \"error\": \"no room\"}]}");
  const Finished failed = toy.host({"tail", "gone"});
  fs::remove_all(toy / "runs/gone");
  CHECK(failed.status == 1);
  CHECK_THAT(failed.out, Contains("failed at step 0: no room"));
}

TEST_CASE("tail: rows are followed until the run ends", "[looking]") {
  const Toy toy;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"toy.toml", "--run.name=live", "--train.max_steps=100000", "--checkpoint.interval=5"};
    args.insert(args.end(), more.begin(), more.end());
    Options options;
    options.cwd = toy.folder();
    return std::make_unique<Process>(toy.command(args), options);
  };
  const std::unique_ptr<Process> run = train({});
  REQUIRE(run->wait_for("    5 "));
  Options options;
  options.cwd = toy.folder();
  // From the first row on: the run may be far ahead of a tail that is slow to start.
  Process tail(toy.command({"tail", "live", "--rows", "100000"}), options);
  CHECK(tail.wait_for(" step     loss"));
  CHECK(tail.wait_for("   12 "));
  run->signal(SIGTERM);
  CHECK(run->wait().status == 75);
  const Finished done = tail.wait();
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("runs/live: stopped at step ") && Contains(": signal"));
}
