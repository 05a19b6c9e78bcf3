#include "bench/neighbour_bench.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/goals.h"
#include "bench/step_runs.h"
#include "bench/steps_case.h"
#include "core/cores.h"
#include "core/error.h"
#include "core/processor.h"
#include "core/text.h"
#include "registry/registries.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

constexpr int kRounds = 3;
constexpr double kSlice = 0.2;  // seconds of steps in a round, about

/// How threads wait for each other: how often libgomp looks before a thread sleeps.
struct Waiting {
  const char* name;
  std::map<std::string, std::string> environment;
  std::vector<std::string> settings = {};
};

std::vector<Waiting> waitings() {
  return {{"sleeps at once (`OMP_WAIT_POLICY=passive`)", {{"OMP_WAIT_POLICY", "passive"}}},
          {"looks 100 times", {{"GOMP_SPINCOUNT", "100"}}},
          {"looks 1000 times (kf-host)", {}},
          {"the same, `run.pin_threads = true`", {}, {"--run.pin_threads=true"}},
          {"looks 10000 times", {{"GOMP_SPINCOUNT", "10000"}}},
          {"looks 300000 times (libgomp)", {{"GOMP_SPINCOUNT", "300000"}}},
          {"never sleeps (`OMP_WAIT_POLICY=active`)", {{"OMP_WAIT_POLICY", "active"}}}};
}

void bench_model(const StepCase& one, const Registries& registries, Goals& goals) {
  const test::TempDir folder;
  write_case(one, folder.path(), registries);
  const double seconds = median(run_own(folder.path(), {1, 9, 1}).seconds);
  const auto steps = static_cast<std::int64_t>(std::max(6.0, kSlice / seconds));
  for (const Waiting& waiting : waitings()) {
    const auto measured = [&] {
      return 1e3 * median(run_own(folder.path(), {2, steps, 1}, waiting.settings, waiting.environment).seconds);
    };
    std::vector<double> quiet, beside;  // milliseconds of a step, the median of each round
    for (int round = 0; round < kRounds; ++round) {
      quiet.push_back(measured());
      const test::Process neighbour({"sh", "-c", "while :; do :; done"});
      beside.push_back(measured());
    }
    const double ratio = median(beside) / median(quiet);
    std::printf("| %s | %s | %.2f | %.2f | %.2f |\n", one.model.c_str(), waiting.name, median(quiet), median(beside), ratio);
    std::fflush(stdout);
    if (waiting.environment.empty() && waiting.settings.empty()) {
      // A thread that has half a core takes twice as long, and the others wait for it.
      goals.at_most(one.model + ": a step beside a busy neighbour / alone", ratio, 2.5, "x");
    }
  }
}

}  // namespace

void bench_neighbour(const Registries& registries, const std::string& model, Goals& goals) {
  const Cores cores = own_cores();
  std::printf("%s, %zu cores, %d threads; the neighbour is one process that never rests\n\n", processor_name().c_str(),
              cores.physical.size(), at::get_num_threads());
  std::printf("| model | a thread that waits | alone, ms a step | with a neighbour | beside / alone |\n|---|---|---|---|---|\n");
  std::size_t models = 0;
  for (const StepCase& one : step_cases(model)) {
    const bool wanted = one.precision == "fp32" && one.form == StepCase::Form::dense && !(model.empty() && one.model == "debug");
    if (wanted) {
      bench_model(one, registries, goals);
      ++models;
    }
  }
  KF_CHECK(models > 0, Code::other, "bench neighbour: there is no model '{}'; take small, debug or tiny", model);
}

}  // namespace kf::bench
