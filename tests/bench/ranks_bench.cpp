#include "bench/ranks_bench.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "e2e/toy.h"

namespace kf::bench {
namespace {

constexpr int kSteps = 24, kFirst = 8;  // a row each step; those before kFirst warm up

struct Measured {
  double seconds = 0, waited_ms = 0, took_ms = 0, bytes = 0;  // of a step
};

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

/// The median over the steps; 0 where rows have no such number.
double median_of(const test::Toy& toy, const std::string& run, const std::string& key) {
  std::vector<double> all;
  for (const auto& [step, text] : toy.series(run, key)) {
    if (step >= kFirst) {
      all.push_back(std::stod(text));
    }
  }
  return all.empty() ? 0 : median(all);
}

Measured measure(const test::Toy& toy, int ranks, const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{"env", "OMP_NUM_THREADS=1"};
  for (const std::string& word :
       toy.command({"--nproc", std::to_string(ranks), "toy.toml", "--run.name=" + name, "--model.dim=256", "--model.n_layers=6",
                    "--model.n_heads=4", "--model.n_kv_heads=4", "--model.max_seq_len=128", "--train.seq_len=128",
                    "--train.batch_size=" + std::to_string(8 / ranks), "--train.grad_accum_steps=1", "--eval.enabled=false",
                    "--train.max_steps=" + std::to_string(kSteps), "--checkpoint.interval=1000", "--metrics.log_interval=1"})) {
    words.push_back(word);
  }
  words.insert(words.end(), more.begin(), more.end());
  test::Options options;
  options.cwd = toy.folder();
  const test::Finished done = test::run(words, options);
  KF_CHECK(done.status == 0, Code::other, "{}: {}{}", name, done.out, done.err);
  Measured out;
  out.seconds = 1 / median_of(toy, name, "tokens_per_sec") * 8 * 128;
  out.waited_ms = median_of(toy, name, "comm_wait_ms");
  out.took_ms = median_of(toy, name, "comm_ms");
  out.bytes = median_of(toy, name, "comm_bytes");
  return out;
}

}  // namespace

void bench_ranks() {
  const test::Toy toy;
  const Measured one = measure(toy, 1, "one", {});
  std::printf("%-46s %10s %10s %12s %14s\n", "processes of one thread each", "ms a step", "of one's", "MB a step", "hidden calls");
  std::printf("%-46s %10.1f %10s\n", "one", 1000 * one.seconds, "1.00");
  const std::vector<std::pair<std::string, std::vector<std::string>>> layouts{
      {"two, dp_replicate", {"--distributed.dp_replicate=2", "--distributed.dp_shard=1"}},
      {"two, dp_replicate, prefetch off", {"--distributed.dp_replicate=2", "--distributed.dp_shard=1", "--distributed.prefetch=false"}},
      {"two, ZeRO-3", {"--distributed.zero_stage=3"}},
      {"two, ZeRO-3, prefetch off", {"--distributed.zero_stage=3", "--distributed.prefetch=false"}},
      {"two, ZeRO-3, gradients in bf16", {"--distributed.zero_stage=3", "--distributed.reduce_dtype=bf16"}}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const Measured two = measure(toy, 2, "two" + std::to_string(i), layouts[i].second);
    const double hidden = two.took_ms > 0 ? std::max(0.0, 1 - two.waited_ms / two.took_ms) : 0;
    std::printf("%-46s %10.1f %10.2f %12.2f %13.0f%%\n", layouts[i].first.c_str(), 1000 * two.seconds, two.seconds / one.seconds,
                two.bytes / 1e6, 100 * hidden);
  }
}

}  // namespace kf::bench
