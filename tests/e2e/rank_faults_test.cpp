// What goes wrong on one rank of several: all end within the time-out, and what they say names the rank and the cause.

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "e2e/script_run.h"
#include "support/free_port.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

/// A run whose hook does `body` on rank 1 behind step 3, where ranks wait for each other for `seconds`.
ScriptRun on_one(const std::string& body, int seconds = 60) {
  return ScriptRun(
      "local ffi = require('ffi')\nffi.cdef[[ int raise(int); int usleep(unsigned); ]]\n" +
      job("train = { max_steps = 12 }, eval = { enabled = false }, distributed = { nccl_timeout_sec = " + std::to_string(seconds) +
          " }, hooks = { { name = 'on_one', on_step_end = function(ctx) if kf.dist.rank == 1 and ctx.step == 3 then " + body +
          " end end } }"));
}

/// The processes that `pid` has started, and theirs, which are ranks (they have KF_RANK), by rank.
std::map<int, pid_t> ranks_below(pid_t pid) {
  std::map<int, pid_t> out;
  std::vector<pid_t> started;
  std::error_code gone;
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) {
      started.push_back(child);
    }
  }
  for (const pid_t child : started) {
    std::ifstream file("/proc/" + std::to_string(child) + "/environ");
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = environment.find("KF_RANK=");
    if (at != std::string::npos) {
      out[std::stoi(environment.substr(at + 8))] = child;
    }
    const std::map<int, pid_t> below = ranks_below(child);
    out.insert(below.begin(), below.end());
  }
  return out;
}

}  // namespace

TEST_CASE("rank faults: one that throws in C++ or Lua ends all, which say where", "[faults]") {
  const auto [body, words] =
      GENERATE(table<std::string, std::string>({{"kf.zeros({ 2, 3 }):mm(kf.zeros({ 2, 3 }))", "mat1 and mat2"},
                                                {"local none = nil; return none.field", "attempt to index local 'none'"}}));
  const ScriptRun run = on_one(body);
  const Finished done = run.go({"--nproc=3"});
  INFO(done.err);
  CHECK(done.status == 3);
  CHECK_THAT(done.err, Contains("kf-host: rank 1: ") && Contains(words) && Contains("[rank 2] kf-host: rank 1: "));
  CHECK_THAT(run.toy.read("runs/s/run.json"), Contains(words));
}

TEST_CASE("rank faults: one that is stopped is named after the time-out, and one that is slow is waited for", "[faults]") {
  SECTION("stopped") {
    const Finished done = on_one("ffi.C.raise(19)", 6).go({"--nproc=3"});  // as long as ranks may take to begin
    INFO(done.err);
    CHECK_FALSE(done.timed_out);
    CHECK(done.status == 4);
    CHECK_THAT(done.err, Contains("kf-host: rank 1 did not come to ") && Contains("within 6 s") && Contains("[rank 2] "));
  }
  SECTION("slow") {
    const Finished done = on_one("ffi.C.usleep(1200000)").go({"--nproc=3"});
    INFO(done.err);
    CHECK(done.status == 0);
  }
}

TEST_CASE("rank faults: one that ends before it has joined keeps nobody waiting", "[faults]") {
  const ScriptRun run("if kf.dist.rank == 1 then " + GENERATE(as<std::string>{}, "error('not here')", "os.exit(6)") + " end\n" +
                      job("train = { max_steps = 2 }"));
  const Finished done = run.go({"--nproc=3"});
  INFO(done.err);
  CHECK((done.status == 3 || done.status == 6));
  CHECK_THAT(done.err, Contains("rank 1 ended with status " + std::to_string(done.status)) && Contains("rank 1 was the first to fail"));
  CHECK_FALSE(fs::exists(run.toy / "runs/s/metrics.jsonl"));
}

TEST_CASE("rank faults: a rank with another script or another job ends all by name before anything is trained", "[faults]") {
  const Toy toy;
  const bool script = GENERATE(true, false);
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Options options;
    options.cwd = toy.write("at" + std::to_string(rank) + "/s.lua", "local kf = require('kf')\n" +
                                                                        std::string(script && rank == 1 ? "print('another')" : "") +
                                                                        "\nreturn { extends = '../toy.toml', train = { max_steps = 2 } }\n")
                      .parent_path();
    options.env = {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
    Words words{"s.lua", "--data.dataset_path=" + (toy / "text").string(), "--eval.enabled=false"};
    if (!script && rank == 1) {
      words.push_back("--train.max_steps=3");
    }
    ranks.push_back(std::make_unique<Process>(toy.command(words), options));
  }
  for (const auto& rank : ranks) {
    const Finished done = rank->wait();
    INFO(done.err);
    CHECK(done.status == (script ? 4 : 2));
    CHECK_THAT(done.err, Contains(script ? "rank 1 has read another s.lua than rank 0" : "rank 1 has another job than rank 0"));
  }
  CHECK_FALSE(fs::exists(toy / "at0/runs"));
}

TEST_CASE("rank faults: four ranks that are watched survive twenty kills, with the bits of an undisturbed run", "[faults]") {
  const Toy toy;
  const auto words = [](const std::string& name, const std::string& steps) {
    return Words{"--nproc=4",
                 "toy.toml",
                 "--run.name=" + name,
                 "--train.batch_size=1",
                 "--train.grad_accum_steps=1",
                 "--model.dim=16",
                 "--model.n_heads=2",
                 "--model.n_kv_heads=1",
                 "--train.seq_len=16",
                 "--eval.enabled=false",
                 "--checkpoint.interval=2",
                 "--checkpoint.keep_last_n=2",
                 "--metrics.sinks=[\"jsonl\"]",  // nobody reads the pipe meanwhile
                 "--scheduler.total_steps=1000000",
                 "--train.max_steps=" + steps};
  };
  Words watched = words("killed", "1000000");  // more than any machine does between twenty kills
  watched.insert(watched.begin(), {"--max-restarts=40", "--restart-pause=0"});
  Options options;
  options.cwd = toy.folder();
  options.timeout = std::chrono::seconds(1500);
  Process process(toy.command(watched), options);
  std::mt19937 draw(15);
  const auto rows = [&] { return fs::exists(toy / "runs/killed/metrics.jsonl") ? fs::file_size(toy / "runs/killed/metrics.jsonl") : 0; };
  std::set<pid_t> killed;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1200);
  for (std::uintmax_t seen = 0; killed.size() < 20 && std::chrono::steady_clock::now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + draw() % 20));
    const std::map<int, pid_t> ranks = ranks_below(process.pid());
    const bool whole =
        ranks.size() == 4 && std::none_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return killed.count(rank.second) > 0; });
    // Most die in the midst of training; every fifth one while it starts.
    if (whole && (rows() > seen || killed.size() % 5 == 4)) {
      const auto victim = std::next(ranks.begin(), static_cast<std::ptrdiff_t>(draw() % 4));
      ::kill(victim->second, SIGKILL);
      killed.insert(victim->second);
      seen = rows();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  REQUIRE(killed.size() == 20);
  for (const auto seen = rows(); rows() <= seen && std::chrono::steady_clock::now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  process.signal(SIGTERM);
  const Finished done = process.wait();
  INFO(done.err << done.out);
  CHECK(done.status == 75);
  CHECK_THAT(done.err, Contains("restart 20 of 40"));
  const std::map<int, std::string> losses = toy.series("killed", "loss");
  const Finished straight = toy.host(words("straight", std::to_string(losses.rbegin()->first)));
  INFO(straight.err);
  REQUIRE(straight.status == 0);
  CHECK(losses == toy.series("straight", "loss"));
}
