// Workers of DiLoCo that come and go: kf-host --workers N.

#include <catch2/catch.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/script_run.h"
#include "support/free_port.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;

namespace {

using Words = std::vector<std::string>;

/// `workers` that exchange every three updates. One of them, whichever is first, is killed behind update 4: the one that gets the token.
std::string job_of(int workers, const std::string& more = "", const std::string& hooks = "") {
  return "local ffi = require('ffi')\nffi.cdef[[ int kill(int, int); int getpid(void); ]]\n" +
         job("train = { max_steps = 12, grad_accum_steps = 1, batch_size = 2, cpu_products = 'plain' }, scheduler = { total_steps = 12 }, "
             "eval = { enabled = false }, checkpoint = { interval = 6 }, diloco = { interval = 3 }, distributed = { dp_replicate = " +
             std::to_string(workers) + more +
             " }, hooks = { { name = 'dies', on_step_end = function(ctx) if ctx.step == 4 and os.rename('token', 'taken') then "
             "ffi.C.kill(ffi.C.getpid(), 9) end end }" +
             hooks + " }");
}

std::string run_of(int worker) { return worker == 0 ? "s" : "s-worker-" + std::to_string(worker); }

/// Workers whose run is complete.
std::vector<std::string> complete(const ScriptRun& run, int workers) {
  std::vector<std::string> out;
  for (int worker = 0; worker < workers; ++worker) {
    if (std::filesystem::exists(run.toy / "runs" / run_of(worker) / "checkpoints/step_12")) {
      out.push_back(run_of(worker));
    }
  }
  return out;
}

/// The weights of two runs at their end are the same to the bit.
void check_same_weights(const Toy& toy, const std::string& a, const std::string& b) {
  const auto end_of = [](const std::string& name) { return "runs/" + name + "/checkpoints/step_12"; };
  const Finished compared = toy.host({"checkpoint", "diff", end_of(a), end_of(b)});
  INFO(a << " and " << b << "\n" << compared.out << compared.err);
  CHECK_THAT(compared.out, Contains("the same: 0 weights moved"));
}

std::string number(const Toy& toy, const std::string& run, const std::string& key, int step) {
  const auto series = toy.series(run, key);
  return series.count(step) == 1 ? series.at(step) : "none";
}

}  // namespace

TEST_CASE("workers: where nobody is lost they learn what one launch of all learns, to the bit", "[workers]") {
  const ScriptRun run(job_of(2));
  REQUIRE(run.toy.host({"--nproc", "2", "s.lua", "--run.name=together"}).status == 0);
  for (const char* steps : {"5", "12"}) {  // each goes on from its own checkpoint, in the middle between two exchanges
    const Finished done = run.toy.host({"--workers", "2", "s.lua", std::string("--train.max_steps=") + steps});
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  }
  check_same_weights(run.toy, "together", "s");
  check_same_weights(run.toy, "s", "s-worker-1");
}

TEST_CASE("workers: one that is killed stops nobody, and those that are left go on together", "[workers]") {
  const ScriptRun run(job_of(3));
  run.toy.write("token", "");
  const Finished done = run.toy.host({"--workers", "3", "s.lua"});
  INFO(done.err << done.out);
  CHECK(done.status == 0);
  CHECK_THAT(done.err + done.out, Contains("of 3 is gone; 2 of them go on"));
  CHECK_THAT(done.err, Contains(" was killed by signal 9"));
  const std::vector<std::string> left = complete(run, 3);
  REQUIRE(left.size() == 2);
  check_same_weights(run.toy, left[0], left[1]);
  for (const std::string& name : left) {
    CHECK(std::stod(number(run.toy, name, "loss", 12)) < std::stod(number(run.toy, name, "loss", 4)));
    CHECK(number(run.toy, name, "diloco/workers", 3) == "3.0");
    CHECK(number(run.toy, name, "diloco/workers", 6) == "2.0");
  }
}

TEST_CASE("workers: one that is killed and started again takes the state of the others", "[workers]") {
  const int ranks = GENERATE(1, 2);  // of each worker
  const ScriptRun run(job_of(2, ranks == 1 ? "" : ", zero_stage = 3"));
  run.toy.write("token", "");
  Words words{"--workers", "2", "--max-restarts", "1", "--restart-pause", "0", "s.lua", "--diloco.min_workers=2"};
  if (ranks > 1) {
    words.insert(words.begin(), {"--nproc", std::to_string(ranks)});
  }
  const Finished done = run.toy.host(words);
  INFO(done.err << done.out);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err + done.out, Contains("came back, with the state of worker"));
  CHECK_THAT(done.err + done.out, Contains("goes on at step 6, with the state of worker"));
  REQUIRE(complete(run, 2).size() == 2);
  check_same_weights(run.toy, "s", "s-worker-1");
}

TEST_CASE("workers: one that comes back takes what hooks have changed on the others, and what they keep", "[workers]") {
  // The survivor's hook asks behind the very update that ends with the exchange, at which the other one comes back.
  const ScriptRun run("local seen = 0\n" +
                      job_of(2, "",
                             ", { name = 'steers', state = function() return seen end, load = function(before) seen = before end, "
                             "on_step_end = function(ctx) seen = seen + 1 ctx:log({ seen = seen }) "
                             "if ctx.step == 6 then ctx:set_lr_scale(0.25) ctx:freeze('layers.0.*') end end }"));
  run.toy.write("token", "");
  const Finished done = run.toy.host({"--workers", "2", "--max-restarts", "1", "--restart-pause", "0", "s.lua", "--diloco.min_workers=2"});
  INFO(done.err << done.out);
  REQUIRE(done.status == 0);
  REQUIRE_THAT(done.err + done.out, Contains("goes on at step 6, with the state of worker"));
  for (const char* key : {"lr", "seen"}) {
    for (const int step : {7, 12}) {
      INFO(key << " at step " << step);
      CHECK(number(run.toy, "s", key, step) == number(run.toy, "s-worker-1", key, step));
      CHECK(number(run.toy, "s", key, step) != "none");
    }
  }
  CHECK(std::stod(number(run.toy, "s", "seen", 12)) == 12);
  CHECK(std::stod(number(run.toy, "s", "lr", 7)) < 0.25 * 3e-3);  // of the job's rate, of which the cosine alone leaves 0.69
  check_same_weights(run.toy, "s", "s-worker-1");
  const auto course = [&](const std::string& name) {
    return nlohmann::json::parse(run.toy.read("runs/" + name + "/checkpoints/step_12/state.json")).at("values").at("course");
  };
  CHECK(course("s").at("frozen") == course("s-worker-1").at("frozen"));
  CHECK_FALSE(course("s").at("frozen").empty());
}

TEST_CASE("workers: commands of several machines meet at HOST:PORT, where one that is killed comes back to the others", "[workers]") {
  const ScriptRun run(job_of(2));
  run.toy.write("token", "");
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  Options options;
  options.cwd = run.toy.folder();
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* worker : {"1", "0"}) {  // each started by an srun of both, whose tasks are no ranks then
    options.env = {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", worker}};
    workers.push_back(std::make_unique<Process>(run.toy.command({"--workers=2", "--worker", worker, "--meet", where, "--max-restarts=1",
                                                                 "--restart-pause=0", "s.lua", "--diloco.min_workers=2"}),
                                                options));
  }
  std::string said;
  for (const auto& worker : workers) {
    const Finished done = worker->wait();
    INFO(done.err << done.out);
    CHECK(done.status == 0);
    said += done.err + done.out;
  }
  CHECK_THAT(said, Contains("came back, with the state of worker") && Contains("goes on at step 6, with the state of worker"));
  REQUIRE(complete(run, 2).size() == 2);
  check_same_weights(run.toy, "s", "s-worker-1");
}

TEST_CASE("workers: too few end the run, saved, and started again they go on", "[workers]") {
  const ScriptRun run(job_of(2));
  run.toy.write("token", "");
  const Finished ended = run.toy.host({"--workers", "2", "s.lua", "--diloco.min_workers=2", "--diloco.timeout_sec=6"});
  INFO(ended.err << ended.out);
  CHECK(ended.status != 0);
  CHECK_THAT(ended.err + ended.out, Contains("step 6: 1 of 2 workers are there (worker ") && Contains("fewer than diloco.min_workers (2)"));
  const Finished again = run.toy.host({"--workers", "2", "s.lua", "--diloco.min_workers=2", "--diloco.timeout_sec=6"});
  INFO(again.err << again.out);
  REQUIRE(again.status == 0);
  check_same_weights(run.toy, "s", "s-worker-1");
}

TEST_CASE("workers: what does not fit together is an error before anything starts", "[workers]") {
  const Toy toy;
  const auto error = [&](const Words& words) {
    const Finished done = toy.host(words);
    CHECK(done.status == 2);
    return done.err;
  };
  CHECK_THAT(error({"toy.toml", "--distributed.dp_replicate=2", "--diloco.interval=2", "--diloco.min_workers=3"}),
             Contains("diloco.min_workers (3) is more than there are workers"));
  CHECK_THAT(error({"--worker", "0", "toy.toml"}), Contains("say how many there are, --workers N"));
  CHECK_THAT(error({"--workers", "2", "--worker", "2", "--meet", "here", "toy.toml"}), Contains("--worker 2 of --workers 2"));
  CHECK_THAT(error({"--workers", "2", "--worker", "1", "toy.toml"}), Contains("say where it meets the others, --meet FOLDER"));
  CHECK_THAT(error({"--workers", "2", "--worker", "1", "--meet", "here", "toy.toml", "--distributed.dp_replicate=2"}),
             Contains("diloco.interval says how many updates lie between their exchanges"));
  CHECK_THAT(error({"--workers", "4", "--worker", "1", "--meet", "here", "toy.toml", "--distributed.dp_replicate=2",
                    "--distributed.dp_shard=2", "--diloco.interval=2"}),
             Contains("--workers 4, and distributed.dp_replicate is 2"));
}
