#include "bench/sinks_bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "builtins/builtins.h"
#include "config/plan/plan.h"
#include "metrics/sink.h"
#include "registry/registries.h"

namespace kf::bench {
namespace {

/// A row as of a run with experts and watched layers: 60 numbers beside those of every row.
StepRow row_at(std::int64_t step) {
  StepRow row;
  row.step = step;
  row.loss = 2.5 + 1.0 / static_cast<double>(step);
  row.time = 1.8e9;
  for (int i = 0; i < 60; ++i) {
    row.extra.emplace_back("watch/grads/layers." + std::to_string(i), 1.0 / (i + static_cast<double>(step)));
  }
  return row;
}

}  // namespace

void bench_sinks() {
  const Registries registries = native_registries();
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("kf_bench_sinks." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  config::Config config;
  config.metrics.prometheus_port = 39237;
  config::Plan plan;
  plan.name = "bench";
  plan.dir = folder;
  plan.tensorboard_dir = folder / "tb_logs";
  std::printf("sinks: a row of 74 numbers and the end of its step, on the training thread, a millisecond apart (target 20 us)\n");
  for (const char* name : {"jsonl", "csv", "tensorboard", "wandb", "mlflow", "prometheus"}) {
    const std::unique_ptr<Sink> sink = make_part(registries.sink, name, config, registries, folder);
    sink->begin({config, plan, "bench", "", 0, 0});
    std::vector<double> microseconds;
    for (std::int64_t step = 1; step <= 1000; ++step) {
      const StepRow row = row_at(step);
      const auto begin = std::chrono::steady_clock::now();
      sink->row(row);
      sink->step_over(step);
      microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a fast step
    }
    sink->end({.status = "complete", .step = 1000});
    std::sort(microseconds.begin(), microseconds.end());
    std::printf("  %-12s median %6.1f us, 99 of 100 below %6.1f us\n", name, microseconds[500], microseconds[990]);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace kf::bench
