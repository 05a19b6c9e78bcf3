#include "bench/profile_bench.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "bench/compare.h"
#include "config/load/load.h"
#include "core/trace.h"
#include "data/loader/loader.h"
#include "model/transformer/build.h"
#include "train/profile/memory_watch.h"
#include "train/profile/op_ranges.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/stepper.h"

namespace kf::bench {
namespace {

/// The fastest of some rounds, in ns a time.
template <class Body>
double nanoseconds(const Body& body) {
  constexpr int kTimes = 100'000;
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) {
      body();
      asm volatile("" ::: "memory");  // or the loop is gone
    }
    const double took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    best = std::min(best, took / kTimes);
  }
  return best;
}

void bench_ranges() {
  const auto range = [] { const TraceRange one(TraceKind::layer, "attention"); };
  const double nothing = nanoseconds([] {});
  const double off = nanoseconds(range);
  const TraceRecorder recorder;
  const double on = nanoseconds([&] { range(); });
  (void)TraceRecorder::take();
  std::printf("a range: %.2f ns where nobody records (an empty loop: %.2f ns), %.0f ns where somebody does\n", off, nothing, on);
}

/// A step of a model, again and again.
struct Trained {
  Trained(const Registries& registries, const std::vector<std::string>& overrides) {
    config::Request request;
    request.overrides = overrides;
    config = config::load_or_fail(request, registries.catalog()).config;
    model = build_model(config, registries);
    materialize(*model, at::kCPU, at::kFloat, 1);
    optimizer = make_part(registries.optimizer, "adamw", config, registries, decay_groups(model->parameters(), 0.1));
    loss = make_part(registries.loss, "cross_entropy", config, registries);
    objective = std::make_unique<Language>(*loss);
    stepper = std::make_unique<Stepper>(*model, *optimizer, *objective, StepperOptions());
    loader = make_train_loader(config, {});
  }
  void step() { stepper->run(*loader, steps++, 1e-4); }

  config::Config config;
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Stepper> stepper;
  std::unique_ptr<Loader> loader;
  std::int64_t steps = 0;
};

/// As train/profile does, without the file.
void profiled(Trained& trained) {
  const TraceRecorder recorder(OpRanges::nodes_made);
  const auto memory = std::make_shared<MemoryWatch>(*trained.model, *trained.optimizer, at::kCPU);
  memory->begin_step();
  {
    const c10::DebugInfoGuard reports(c10::DebugInfoKind::PROFILER_STATE, memory);
    const OpRanges ops;
    trained.step();
  }
  for (const ThreadEvents& events : TraceRecorder::take()) {
    if (events.thread == syscall(SYS_gettid)) {
      memory->end_step(events.places);
    }
  }
}

void bench_step(const Registries& registries, const std::string& title, const std::vector<std::string>& overrides) {
  const auto trained = std::make_shared<Trained>(registries, overrides);
  compare(title, {"recorded", [trained] { profiled(*trained); }}, {"not recorded", [trained] { trained->step(); }}, 3);
}

}  // namespace

void bench_profile(const Registries& registries) {
  bench_ranges();
  bench_step(registries, "step of a model of width 64",
             {"--model.dim=64", "--model.n_layers=4", "--model.n_heads=4", "--model.n_kv_heads=2", "--model.vocab_size=257",
              "--model.max_seq_len=64", "--train.seq_len=64", "--train.batch_size=4", "--train.mixed_precision=fp32"});
  bench_step(registries, "step of a model of width 256",
             {"--model.dim=256", "--model.n_layers=4", "--model.n_heads=8", "--model.n_kv_heads=4", "--model.vocab_size=512",
              "--model.max_seq_len=256", "--train.seq_len=256", "--train.batch_size=8", "--train.mixed_precision=fp32"});
}

}  // namespace kf::bench
