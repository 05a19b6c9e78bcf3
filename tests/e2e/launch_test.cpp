// Processes that torchrun, srun, mpirun or kf-host on several machines have started, and what a launch says when it goes wrong.

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "e2e/script_run.h"
#include "support/free_port.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

/// Four steps of eight sequences on two ranks.
Words toy_job(const std::string& name, const Words& more = {}) {
  Words words{
      "toy.toml", "--run.name=" + name, "--train.batch_size=2", "--train.max_steps=4", "--scheduler.total_steps=4", "--eval.enabled=false"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// What a launcher leaves in the environment of process `rank` of two.
struct Stranger {
  std::string name;
  std::function<Variables(int rank)> variables;
  Words words = {};
};

std::vector<Stranger> strangers() {
  const std::string port = std::to_string(free_port()), own = "127.0.0.1:" + std::to_string(free_port());
  return {{"torchrun",
           [=](int rank) {
             const std::string number = std::to_string(rank);
             return Variables{{"RANK", number},          {"WORLD_SIZE", "2"},          {"LOCAL_RANK", number},
                              {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", port}};
           }},
          {"srun",
           [=](int rank) {
             const std::string number = std::to_string(rank);
             return Variables{
                 {"SLURM_JOB_ID", port},    {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"},   {"SLURM_PROCID", number},
                 {"SLURM_LOCALID", number}, {"SLURM_NODEID", "0"},  {"SLURM_STEP_NODELIST", "here"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}};
           }},
          {"openmpi",
           [=](int rank) {
             const std::string number = std::to_string(rank);
             return Variables{{"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_RANK", number},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", number},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_NAMESPACE", port}};
           }},
          {"mpich",
           [](int rank) {
             return Variables{{"PMI_SIZE", "2"}, {"PMI_RANK", std::to_string(rank)}};
           },
           {"--rdzv", own}}};
}

/// Starts a process for each of the environments and waits for all.
std::vector<Finished> together(const Toy& toy, const std::vector<Variables>& environments, const std::vector<Words>& words) {
  std::vector<std::unique_ptr<Process>> processes;
  for (std::size_t i = 0; i < environments.size(); ++i) {
    Options options;
    options.cwd = toy.folder();
    options.env = environments[i];
    processes.push_back(std::make_unique<Process>(toy.command(words[i % words.size()]), options));
  }
  std::vector<Finished> out;
  for (const auto& process : processes) {
    out.push_back(process->wait());
  }
  return out;
}

}  // namespace

TEST_CASE("launch: processes of torchrun, srun and mpirun are ranks by their variables, with the bits of --nproc", "[launch]") {
  const Toy toy;
  Words own = toy_job("own");
  own.insert(own.begin(), {"--nproc", "2"});
  REQUIRE(toy.host(own).status == 0);
  for (const Stranger& launcher : strangers()) {
    INFO(launcher.name);
    const std::vector<Finished> ranks =
        together(toy, {launcher.variables(0), launcher.variables(1)}, {toy_job(launcher.name, launcher.words)});
    INFO(ranks[0].err << ranks[0].out << "\n---\n" << ranks[1].err << ranks[1].out);
    CHECK(ranks[0].status == 0);
    CHECK(ranks[1].status == 0);
    CHECK_THAT(ranks[0].out, Contains("training complete: 4 steps"));
    CHECK(ranks[1].out.empty());  // one tells for all
    CHECK(toy.series(launcher.name, "loss") == toy.series("own", "loss"));
  }
}

TEST_CASE("launch: several machines with several processes each are one run", "[launch]") {
  const Toy toy;
  const Words shape{"--train.grad_accum_steps=1", "--distributed.dp_replicate=2"};
  Words own = toy_job("own", shape);
  own.insert(own.begin(), {"--nproc", "4"});
  REQUIRE(toy.host(own).status == 0);
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  std::vector<Words> words;
  for (const char* machine : {"1", "0"}) {
    words.push_back(toy_job("two", shape));
    words.back().insert(words.back().begin(), {"--nproc=2", "--nnodes=2", "--node-rank", machine, "--rdzv", where});
  }
  const std::vector<Finished> machines = together(toy, {{}, {}}, words);
  INFO(machines[0].err << machines[0].out << "\n---\n" << machines[1].err << machines[1].out);
  CHECK(machines[0].status == 0);
  CHECK(machines[1].status == 0);
  CHECK(toy.series("two", "loss") == toy.series("own", "loss"));
}

TEST_CASE("launch: a machine that srun has started once knows its number and where all meet", "[launch]") {
  const Toy toy;
  const std::string job = std::to_string(free_port());
  const auto machine = [&](const std::string& number) {
    return Variables{
        {"SLURM_JOB_ID", job},     {"SLURM_STEP_ID", "0"},          {"SLURM_STEP_NUM_TASKS", "2"},     {"SLURM_PROCID", number},
        {"SLURM_LOCALID", number}, {"SLURM_STEP_NODELIST", "here"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}};
  };
  Words words = toy_job("two");
  words.insert(words.begin(), {"--nproc=1", "--nnodes=2"});
  const std::vector<Finished> machines = together(toy, {machine("0"), machine("1")}, {words});
  INFO(machines[0].err << machines[0].out << "\n---\n" << machines[1].err << machines[1].out);
  CHECK(machines[0].status == 0);
  CHECK(machines[1].status == 0);
  Words without = toy_job("none");
  without.insert(without.begin(), "--nproc=2");
  const std::vector<Finished> refused = together(toy, {machine("0")}, {without});
  CHECK(refused[0].status == 2);
  CHECK_THAT(refused[0].err, Contains("srun has started 2 processes") && Contains("--nnodes 2"));
  Words twice = toy_job("none");
  twice.insert(twice.begin(), {"--nproc=1", "--nnodes=2", "--node-rank=1"});
  const std::vector<Finished> told = together(toy, {machine("0")}, {twice});
  CHECK(told[0].status == 2);
  CHECK_THAT(told[0].err, Contains("--node-rank 1: srun has said already") && Contains("SLURM_PROCID=0 of SLURM_STEP_NUM_TASKS=2"));
}

TEST_CASE("launch: who does not come is named with its machine, and a port that is taken is said", "[launch]") {
  const Toy toy;
  SECTION("absent") {
    const Variables first{{"SLURM_JOB_ID", std::to_string(free_port())},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "3"},
                          {"SLURM_PROCID", "0"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NODEID", "0"},
                          {"SLURM_STEP_NODELIST", "localhost,far[07-08]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}};
    const std::vector<Finished> one = together(toy, {first}, {toy_job("x", {"--distributed.nccl_timeout_sec=1"})});
    CHECK(one[0].status == 4);
    CHECK_THAT(one[0].err, Contains("ranks 1 (on far07), 2 (on far08) of 3 did not come") && Contains("within 1 s"));
  }
  SECTION("taken") {
    const TakenPort port;
    const Finished done = toy.host({"--nproc=2", "--rdzv=127.0.0.1:" + std::to_string(port.number()), "toy.toml"});
    INFO(done.err);
    CHECK(done.status == 4);
    CHECK_THAT(done.err, Contains("port " + std::to_string(port.number()) + " of this machine is in use") && Contains("--rdzv"));
  }
}

TEST_CASE("launch: a place that nobody keeps is said once a machine, however many ranks it starts", "[launch]") {
  const Toy toy;
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  const Finished done =
      toy.host({"--nproc=3", "--nnodes=2", "--node-rank=1", "--rdzv", where, "toy.toml", "--distributed.nccl_timeout_sec=1"});
  INFO(done.err);
  CHECK(done.status == 4);
  const std::string said = " cannot reach " + where + " (kept by rank 0) within 1 s: nobody answers there";
  const std::size_t first = done.err.find(said);
  REQUIRE(first != std::string::npos);
  CHECK(done.err.find(said, first + 1) == std::string::npos);
  CHECK_THAT(done.err, Contains("was the first to fail, with status 4"));
}

TEST_CASE("launch: what other ranks write may stay off the terminal, but not that of one that fails", "[launch]") {
  const ScriptRun run(job(
      "train = { max_steps = 4 }, eval = { enabled = false }, hooks = { { name = 'says', on_step_end = function(ctx) print('> step ' .. "
      "ctx.step .. ' on ' .. kf.dist.rank) if kf.args[1] and kf.dist.rank == 1 and ctx.step == 3 then error('no more') end end } }"));
  const Finished well = run.toy.host({"--nproc=2", "--rank-output=leader", "s.lua"});
  INFO(well.err);
  CHECK(well.status == 0);
  CHECK_THAT(well.out, Contains("> step 2 on 0"));
  CHECK_THAT(well.out + well.err, !Contains("on 1"));
  CHECK_THAT(run.toy.read("runs/s/log.rank-1.txt"), Contains("> step 2 on 1"));
  const Finished ill = run.toy.host({"--nproc=2", "--rank-output=leader", "s.lua", "--run.fresh=true", "--", "fail"});
  INFO(ill.err << ill.out);
  CHECK(ill.status == 3);
  CHECK_THAT(ill.err, Contains("[rank 1] > step 3 on 1") && Contains("rank 1 was the first to fail, with status 3"));
}

TEST_CASE("launch: what a lone rank of a machine has written is shown where it fails", "[launch]") {
  const ScriptRun run("print('> here is ' .. kf.dist.rank)\nif kf.dist.rank == 1 then error('not here') end\n" +
                      job("train = { max_steps = 2 }, eval = { enabled = false }"));
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  std::vector<Words> words;
  for (const char* machine : {"1", "0"}) {
    words.push_back({"--nproc=1", "--nnodes=2", "--node-rank", machine, "--rdzv", where, "--rank-output=leader", "s.lua"});
  }
  const std::vector<Finished> machines = together(run.toy, {{}, {}}, words);
  INFO(machines[0].err << "\n---\n" << machines[1].err);
  CHECK(machines[0].status == 3);
  CHECK_THAT(machines[0].err, Contains("[rank 1] > here is 1") && Contains("not here") && !Contains("was the first to fail"));
}

TEST_CASE("launch: options that do not belong together, or leave open what must be known", "[launch]") {
  const Toy toy;
  Options here;
  here.cwd = toy.folder();
  Process lost(toy.command({"--nproc=2", "--nnodes=2", "--node-rank=1", "--rdzv=nobody.invalid:29500", "toy.toml"}), here);
  const auto says = [&](Words words) {
    words.emplace_back("toy.toml");
    const Finished done = toy.host(words);
    return std::to_string(done.status) + " " + done.err;
  };
  CHECK_THAT(says({"--nnodes=2"}), Contains("2 ") && Contains("give --nproc, too"));
  CHECK_THAT(says({"--nproc=2", "--nnodes=2"}), Contains("say which machine this is, --node-rank 0 to 1"));
  CHECK_THAT(says({"--nproc=2", "--nnodes=2", "--node-rank=0"}), Contains("say where the machines meet, --rdzv HOST:PORT"));
  CHECK_THAT(says({"--nproc=2", "--nnodes=2", "--node-rank=2", "--rdzv=h:1"}), Contains("--node-rank 2 of --nnodes 2"));
  CHECK_THAT(says({"--nproc=1", "--node-rank=1"}), Contains("--node-rank 1 of --nnodes 1"));
  CHECK_THAT(says({"--rdzv=h:1"}), Contains("--rdzv h:1: this is one process"));
  CHECK_THAT(says({"--nproc=2", "--rdzv=here"}), Contains("2 ") && Contains("neither HOST:PORT nor file:PATH"));
  CHECK_THAT(says({"--nproc=2", "--rank-output=both"}), Contains("--rank-output both: must be all or leader"));
  CHECK_THAT(says({"--rank-output=leader"}), Contains("--rank-output is of what --nproc N starts"));
  CHECK_THAT(says({"--restart-pause=3"}), Contains("give --max-restarts, too"));
  CHECK_THAT(says({"--max-restarts=3", "--nproc=1", "--rdzv=file:meet"}), Contains("--max-restarts 3 does not go with --rdzv file:meet"));
  CHECK_THAT(says({"--nproc=some"}), Contains("--nproc some: must be a number of processes"));
  const Finished nowhere = lost.wait();
  CHECK(nowhere.status == 2);
  CHECK_THAT(nowhere.err, StartsWith("kf-host: ranks 2 to 3 cannot find nobody.invalid:29500") &&
                              Contains("does not know the host 'nobody.invalid'") && Contains("the machine of rank 0"));
  CHECK(std::count(nowhere.err.begin(), nowhere.err.end(), '\n') == 1);  // no rank says it again, and torch is silent
  Options options = here;
  options.env = {{"CUDA_VISIBLE_DEVICES", ""}};
  CHECK_THAT(run(toy.command({"--nproc", "gpu", "toy.toml"}), options).err, Contains("--nproc gpu: no GPU is seen"));
  options.env = {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}};
  CHECK_THAT(run(toy.command({"toy.toml"}), options).err, Contains("MPICH started 2 processes") && Contains("--rdzv HOST:PORT"));
  CHECK_FALSE(std::filesystem::exists(toy / "runs"));
}
