#include "report/page/sweep_data.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/temp_dir.h"
#include "sweep/store.h"

using namespace kf;
using namespace kf::report;
using nlohmann::json;
using sweep::Distribution;

namespace {

/// A sweep of eight trials over a rate and a choice; the last one failed.
void make_sweep(const fs::path& folder) {
  sweep::Store store(folder / "study.db", sweep::Database::Mode::create);
  store.open_study("<s>", false);
  store.set_attribute("definition", config::Node(config::Table()));
  const Distribution rate = Distribution::real(1e-4, 1e-1, 0, true);
  const Distribution names = Distribution::choice({config::Node(std::string("adamw")), config::Node(std::string("lion"))});
  for (int i = 0; i < 8; ++i) {
    sweep::Draw drawn;
    drawn.parameters = {
        {"optimizer.lr", rate, 1e-4 * (i + 1)}, {"optimizer.name", names, static_cast<double>(i % 2)}, {"still", rate, 1e-3}};
    const sweep::Trial trial = *store.claim(8, sweep::Worker::self(), [&](const auto&, std::int64_t) { return std::optional(drawn); });
    store.finish(trial.id, i < 7 ? sweep::TrialState::complete : sweep::TrialState::fail, i < 7 ? std::optional(3.0 - i) : std::nullopt,
                 "no");
  }
}

}  // namespace

TEST_CASE("page: a sweep has what varied, every trial and what matters", "[report]") {
  const test::TempDir dir;
  fs::create_directories(dir / "sweep/trials/0003");
  make_sweep(dir / "sweep");
  CHECK(is_sweep(dir / "sweep"));
  CHECK(sweep_of(dir / "sweep/trials/0003") == dir / "sweep");
  CHECK(sweep_of(dir / "sweep").empty());
  JsonWriter writer;
  write_sweep(writer, dir / "sweep");
  const json data = json::parse(writer.text());
  CHECK(data["name"] == "<s>");
  CHECK(data["objective"] == "objective");
  CHECK(data["best"] == 6);
  CHECK(data["counts"] == json({{"complete", 7}, {"fail", 1}}));
  REQUIRE(data["parameters"].size() == 2);  // one that never varied is no axis
  CHECK(data["parameters"][0] == json({{"name", "optimizer.lr"}, {"log", true}, {"low", 1e-4}, {"high", 8e-4}, {"labels", json::array()}}));
  CHECK(data["parameters"][1]["labels"] == json({"adamw", "lion"}));
  REQUIRE(data["trials"].size() == 8);
  CHECK(data["trials"][2]["values"] == json({3e-4, 0.0}));
  CHECK(data["trials"][7]["value"].is_null());
  CHECK(data["importance"][0]["name"] == "optimizer.lr");
  CHECK(data["importance"][0]["share"].get<double>() > data["importance"][1]["share"].get<double>());
}

TEST_CASE("page: a store that cannot be read is said, and the others are there", "[report]") {
  const test::TempDir dir;
  fs::create_directories(dir / "good");
  make_sweep(dir / "good");
  dir.write("bad/study.db", "no database at all, but a text that is long enough to be taken for one");
  std::vector<std::string> problems;
  JsonWriter writer;
  writer.begin_object();
  write_sweeps(writer, {dir / "bad", dir / "good"}, problems);
  CHECK(json::parse(writer.end_object().text())["sweeps"].size() == 1);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("bad") != std::string::npos);
}
