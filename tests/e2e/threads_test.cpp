// How many threads the program computes with, and where they stay.

#include <catch2/catch.hpp>

#include <sched.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/cores.h"
#include "core/fs.h"
#include "core/text.h"
#include "e2e/toy.h"

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

/// What this process starts may run on these processors alone.
class Bound {
 public:
  explicit Bound(const std::vector<int>& processors) : before_(allowed_processors()) { stay_on(processors); }
  ~Bound() { stay_on(before_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  static void stay_on(const std::vector<int>& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int processor : processors) {
      CPU_SET(processor, &set);
    }
    REQUIRE(::sched_setaffinity(0, sizeof set, &set) == 0);
  }

  std::vector<int> before_;
};

/// Without OMP_NUM_THREADS where `threads` is "".
Finished host(const Toy& toy, const std::vector<std::string>& args, const std::string& threads) {
  Options options;
  options.cwd = toy.folder();
  if (threads.empty()) {
    options.unset = {"OMP_NUM_THREADS"};
  } else {
    options.env["OMP_NUM_THREADS"] = threads;
  }
  Finished done = run(toy.command(args), options);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

int threads_of(const Toy& toy) { return nlohmann::json::parse(toy.read("runs/toy/run.json"))["starts"][0]["threads"].get<int>(); }

/// A job that writes on which processors the threads of its process may run, one line a thread, into the file `seen.RANK`.
constexpr const char* kLooks = R"(local kf = require('kf')
return { extends = 'toy.toml', run = { name = 'toy', pin_threads = true }, train = { max_steps = 2 }, hooks = { {
  on_step_end = function(ctx)
    if ctx.step == 2 then
      local out = assert(io.open('seen.' .. kf.dist.rank, 'w'))
      local tasks = io.popen('grep -h Cpus_allowed_list /proc/$PPID/task/*/status')
      for line in tasks:lines() do out:write(line:match('%S+$'), '\n') end
      out:close()
    end
  end } } }
)";

std::set<std::string> seen_by(const Toy& toy, int rank) {
  const std::vector<std::string> lines = split(toy.read("seen." + std::to_string(rank)), '\n');
  std::set<std::string> out(lines.begin(), lines.end());
  out.erase("");
  return out;
}

std::string list_of(const std::vector<std::vector<int>>& cores) {
  std::vector<int> all;
  for (const std::vector<int>& core : cores) {
    all.insert(all.end(), core.begin(), core.end());
  }
  std::sort(all.begin(), all.end());
  return processor_list(all);
}

}  // namespace

TEST_CASE("threads: one a physical core of those that the process may use, unless OMP_NUM_THREADS says another number", "[threads]") {
  const Toy toy;
  const std::vector<std::string> job{"toy.toml", "--train.max_steps=1", "--run.fresh=true"};
  host(toy, job, "");
  CHECK(threads_of(toy) == own_cores().threads());
  const Finished single = host(toy, job, "1");
  CHECK(threads_of(toy) == 1);
  CHECK_THAT(single.out, Contains(own_cores().logical() == 1 ? "cpu, 1 thread," : "cpu, 1 thread on "));
  const Bound one({allowed_processors().back()});
  CHECK_THAT(host(toy, job, "").out, Contains("cpu, 1 thread,") || Contains("cpu, 1 thread on 1 core"));
  CHECK(threads_of(toy) == 1);
}

TEST_CASE("threads: run.pin_threads keeps each thread of a loop on a core, and the others on the cores of the process", "[threads]") {
  const Toy toy;
  toy.write("looks.lua", kLooks);
  const Finished done = host(toy, {"looks.lua"}, "2");
  const std::vector<std::vector<int>> cores = own_cores().physical;
  CHECK_THAT(done.err, Contains("threads are pinned: ") && Contains(" on processors " + list_of(cores)));
  const std::set<std::string> seen = seen_by(toy, 0);
  CHECK(seen.count(list_of(cores)) == 1);
  if (cores.size() > 1) {  // on one core a single thread computes
    CHECK(seen.count(list_of({cores[1]})) == 1);
  }
  toy.write("free.lua", std::string(kLooks).replace(std::string(kLooks).find("true"), 4, "false"));
  host(toy, {"free.lua", "--run.fresh=true"}, "2");
  CHECK(seen_by(toy, 0) == std::set<std::string>{list_of(cores)});
}

TEST_CASE("threads: ranks of one machine that pin their threads share its cores out", "[threads]") {
  const Toy toy;
  toy.write("looks.lua", kLooks);
  host(toy, {"--nproc", "2", "looks.lua", "--train.batch_size=2"}, "");
  const std::vector<std::vector<int>> cores = own_cores().physical;
  for (int rank = 0; rank < 2; ++rank) {
    CAPTURE(rank);
    CHECK(seen_by(toy, rank).count(list_of(share_of_cores(cores, static_cast<std::size_t>(rank), 2))) == 1);
  }
}

TEST_CASE("threads: where OpenMP gives fewer of them than it is asked for, the numbers are the same", "[threads]") {
  const Toy toy;
  const auto loss_with = [&](const std::string& variable, const std::string& value) {
    Options options;
    options.cwd = toy.folder();
    options.env["OMP_NUM_THREADS"] = "2";
    if (!variable.empty()) {
      options.env[variable] = value;
    }
    const Finished done = run(toy.command({"toy.toml", "--run.fresh=true", "--train.max_steps=3", "--model.ffn_hidden_dim=1024",
                                           "--train.batch_size=8", "--eval.enabled=false", "--metrics.log_interval=3"}),
                              options);
    INFO(variable << done.out << done.err);
    REQUIRE(done.status == 0);
    const std::vector<std::string> rows = split(toy.read("runs/toy/metrics.jsonl"), '\n');
    return nlohmann::json::parse(rows.at(rows.size() - 2))["loss"].get<double>();
  };
  const double loss = loss_with("", "");
  CHECK(loss_with("OMP_THREAD_LIMIT", "1") == Approx(loss).epsilon(1e-5));
  CHECK(loss_with("OMP_DYNAMIC", "true") == Approx(loss).epsilon(1e-5));
  CHECK(loss_with("OMP_MAX_ACTIVE_LEVELS", "0") == Approx(loss).epsilon(1e-5));
}

TEST_CASE("threads: an instruction set that the processor lacks is refused before its first instruction", "[threads]") {
  const Toy toy;
  if (read_file("/proc/cpuinfo").find("avx512f") != std::string::npos) {
    return;  // it has all that can be asked for
  }
  Options options;
  options.cwd = toy.folder();
  options.env["ATEN_CPU_CAPABILITY"] = "avx512";
  const Finished done = run(toy.command({"toy.toml"}), options);
  CHECK(done.status == 2);
  CHECK_THAT(done.err, Contains("ATEN_CPU_CAPABILITY=avx512: this processor does not have these instructions"));
}
