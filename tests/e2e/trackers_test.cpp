// Trackers of experiments, through the real program: what their own readers find.

#include <catch2/catch.hpp>

#include <fstream>

#include "core/fs.h"
#include "e2e/script_run.h"
#include "support/free_port.h"

using Catch::Contains;
using kf::test::Finished;
using kf::test::job;
using kf::test::ScriptRun;
namespace fs = std::filesystem;

namespace {

const fs::path kOracle = fs::path(KF_SOURCE_DIR) / ".deps/trackers";

bool has_oracle() {
  if (!fs::exists(kOracle)) {
    WARN("their libraries are not in .deps/trackers (scripts/trackers.sh): what trackers get is not read with them");
    return false;
  }
  return true;
}

Finished python(const std::vector<std::string>& args) {
  kf::test::Options options;
  options.env = {{"PYTHONPATH", kOracle.string()}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"MLFLOW_ALLOW_FILE_STORE", "true"}};
  std::vector<std::string> all{"python3"};
  all.insert(all.end(), args.begin(), args.end());
  return kf::test::run(all, options);
}

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

/// What a writer that was killed in the middle of a record leaves.
void tear(const fs::path& folder, const std::string& pattern) {
  const std::vector<fs::path> files = kf::glob(folder, pattern);
  REQUIRE_FALSE(files.empty());
  std::ofstream(files.back(), std::ios::binary | std::ios::app) << "\x40\x01";
}

}  // namespace

TEST_CASE("trackers: each number of a step is there once, also in a run that was killed and went on", "[trackers]") {
  const ScriptRun run(job(R"(run = { name = 's' }, train = { max_steps = tonumber(kf.args[1] or 8) }, checkpoint = { interval = 4 },
  eval = { interval = 4 }, metrics = { log_interval = 1, histogram_interval = 2, watch = { 'grads' }, watch_interval = 3,
  sinks = { 'tensorboard', 'wandb', 'mlflow' } },
  hooks = { { name = 'text', on_step_end = function(ctx)
    ctx:log_text('samples/1', 'step ' .. ctx.step .. '\n# of *many*')
    if ctx.step > 4 then ctx:log({ ['late/number'] = 1 / 3 }) end
  end } },)"));
  good(run.go());
  run.forget_after(4);
  tear(run.toy / "runs/s", "tb_logs/*");
  tear(run.toy / "runs/s", "wandb/*/*.wandb");
  const Finished again = good(run.go({"--", "10"}));
  CHECK_THAT(again.err, Contains("left out what was not written to its end"));
  CHECK(run.toy.series("s", "loss").size() == 10);
  if (has_oracle()) {
    const Finished read =
        good(python({(fs::path(KF_SOURCE_DIR) / "tests/support/trackers_oracle.py").string(), (run.toy / "runs/s").string()}));
    CHECK_THAT(read.out, Contains("mlflow") && Contains("read"));
  }
}

TEST_CASE("trackers: Prometheus' own parsers read the page of a run", "[trackers]") {
  const std::string port = std::to_string(kf::test::free_port());
  const ScriptRun run(job("metrics = { log_interval = 1, prometheus_port = " + port + R"( }, train = { max_steps = 3 }, hooks = { {
  name = 'look', on_step_end = function(ctx)
    if ctx.step == 3 then
      os.execute("python3 -c 'import urllib.request as u; open(\"page\", \"wb\").write(u.urlopen(\"http://127.0.0.1:)" +
                          port + R"(/metrics\").read())'")
    end
  end } },)"));
  const Finished done = good(run.go());
  CHECK_THAT(done.err, Contains("http://127.0.0.1:" + port + "/metrics"));
  CHECK_THAT(run.toy.read("page"), Contains("\nkf_loss{run=\"s\",run_id=\"") && Contains(",rank=\"0\"}"));
  if (kf::test::run({"bash", "-c", "command -v promtool"}).status == 0) {
    const Finished checked = kf::test::run({"bash", "-c", "promtool check metrics < '" + (run.toy / "page").string() + "'"});
    INFO(checked.out << checked.err);
    CHECK((checked.status == 0 || checked.status == 3));  // 3: it reads the page, and would name some numbers otherwise
  }
  if (has_oracle()) {
    const Finished read = good(python({"-c", R"(
import sys
from prometheus_client.parser import text_string_to_metric_families
names = {family.name: family.samples for family in text_string_to_metric_families(open(sys.argv[1]).read())}
assert names["kf_step"][0].value in (1, 2) and names["kf_loss"][0].labels["rank"] == "0", names
print(len(names))
)",
                                       (run.toy / "page").string()}));
    CHECK(std::stoi(read.out) > 10);
  }
}

TEST_CASE("trackers: a port that another program has is a warning, and the run goes on", "[trackers]") {
  const kf::test::TakenPort taken;
  const ScriptRun run(job("metrics = { prometheus_port = " + std::to_string(taken.number()) + " }, train = { max_steps = 2 },"));
  const Finished done = good(run.go());
  CHECK_THAT(done.err, Contains("no metrics at http://127.0.0.1:" + std::to_string(taken.number()) + "/metrics") &&
                           Contains("Address already in use") && Contains("the run goes on"));
}

TEST_CASE("trackers: keys that have no effect or cannot have one are told", "[trackers]") {
  const ScriptRun run(job("metrics = { wandb_project = 'x', histogram_interval = 5 }, train = { max_steps = 1 },"));
  const Finished done = good(run.go());
  CHECK_THAT(done.err, Contains("metrics.wandb_project has no effect: metrics.sinks has no \"wandb\"") &&
                           Contains("metrics.histogram_interval has no effect"));
  run.write(job("metrics = { sinks = { 'prometheus' }, wandb_run_id = 'a/b' },"));
  const Finished bad = run.go();
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, Contains("needs a port: set metrics.prometheus_port") && Contains("metrics.wandb_run_id ('a/b') must have letters"));
}
