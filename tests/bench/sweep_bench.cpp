#include "bench/sweep_bench.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/step_runs.h"
#include "core/error.h"
#include "core/processor.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

constexpr int kRounds = 3;

/// The model *tiny* of docs/performance.md, which a trial trains for ten steps, evaluates and saves.
constexpr const char* kJob = R"([model]
dim = 64
n_layers = 2
n_heads = 4
vocab_size = 257
max_seq_len = 32

[train]
batch_size = 1
seq_len = 32
max_steps = 10
mixed_precision = "fp32"

[data]
dataset_path = "text"
file_pattern = "*.txt"

[eval]
enabled = true
interval = 10
steps = 1
dataset_path = "text"
file_pattern = "*.txt"

[run]
device = "cpu"
)";

std::string script(bool isolate, int trials) {
  return "local kf = require('kf')\nreturn kf.sweep({ base = 'job.toml', space = { ['optimizer.lr'] = kf.loguniform(1e-4, 1e-2) },\n"
         "  method = 'random', isolate = " +
         std::string(isolate ? "true" : "false") + ", trials = " + std::to_string(trials) + " })\n";
}

/// Of the whole program, with its children.
struct Cost {
  double seconds = 0;
  double computed = 0;  // seconds of processors
};

/// Of the children that have ended.
double computed_by_children() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Cost cost_of_sweep(bool isolate, int trials) {
  const test::TempDir folder;
  folder.write("job.toml", kJob);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "line " + std::to_string(i * 31 % 97) + " of a text that repeats itself, more or less; ";
  }
  folder.write("text/a.txt", text);
  folder.write("sweep.lua", script(isolate, trials));
  test::Options options;
  options.cwd = folder.path();
  const double computed = computed_by_children();
  const auto begin = std::chrono::steady_clock::now();
  const test::Finished done = test::run({KF_HOST, "sweep.lua"}, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  KF_CHECK(done.status == 0, Code::other, "bench sweep: status {}: {}{}", done.status, done.out, done.err);
  return {seconds, computed_by_children() - computed};
}

/// A row: what lies between a sweep of few trials and one of many, since the start of the program is in both.
void print_row(const char* what, bool isolate, int few, int many) {
  std::vector<double> rates, computed;
  for (int i = 0; i < kRounds; ++i) {
    const Cost less = cost_of_sweep(isolate, few), more = cost_of_sweep(isolate, many);
    rates.push_back((many - few) / (more.seconds - less.seconds));
    computed.push_back(1e3 * (more.computed - less.computed) / (many - few));
  }
  std::printf("| %s | %.1f | %.0f |\n", what, median(rates), median(computed));
  std::fflush(stdout);
}

}  // namespace

void bench_sweep() {
  std::printf("%s, %d threads\n\n", processor_name().c_str(), at::get_num_threads());
  std::printf("| trials of 10 steps | a second | processors compute, ms a trial |\n|---|---|---|\n");
  print_row("each a process of its own", true, 2, 12);
  print_row("in the process of the sweep (isolate = false)", false, 2, 102);
}

}  // namespace kf::bench
