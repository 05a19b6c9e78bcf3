#include "bench/ranks_bench.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "metrics/jsonl.h"
#include "metrics/names/names.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

constexpr const char* kJob = R"([model]
dim = 256
n_layers = 6
n_heads = 4
n_kv_heads = 4
vocab_size = 257
max_seq_len = 128

[train]
seq_len = 128
mixed_precision = "fp32"

[data]
dataset_path = "text"
file_pattern = "*.txt"

[eval]
enabled = false

[checkpoint]
interval = 1000

[metrics]
log_interval = 1
)";
constexpr int kSteps = 24, kFirst = 8;  // a row each step; those before kFirst warm up

struct Measured {
  double seconds = 0, waited_ms = 0, took_ms = 0, bytes = 0;  // of a step
};

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

/// The median of a number over the steps; 0 where rows have no such number.
double median_of(const std::vector<StepRow>& rows, const std::string& key) {
  std::vector<double> all;
  for (const StepRow& row : rows) {
    const auto found = std::find_if(row.extra.begin(), row.extra.end(), [&](const auto& number) { return number.first == key; });
    if (found != row.extra.end()) {
      all.push_back(found->second);
    }
  }
  return all.empty() ? 0 : median(all);
}

std::vector<StepRow> warm_rows(const fs::path& file) {
  std::vector<StepRow> out;
  for (const auto& row : read_rows(file)) {
    if (const auto* const step = std::get_if<StepRow>(&row); step != nullptr && step->step >= kFirst) {
      out.push_back(*step);
    }
  }
  return out;
}

Measured measure(const test::TempDir& folder, int ranks, const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{"env",
                                 "OMP_NUM_THREADS=1",
                                 KF_HOST,
                                 "--nproc",
                                 std::to_string(ranks),
                                 "job.toml",
                                 "--run.name=" + name,
                                 "--train.batch_size=" + std::to_string(8 / ranks),
                                 "--train.max_steps=" + std::to_string(kSteps)};
  words.insert(words.end(), more.begin(), more.end());
  test::Options options;
  options.cwd = folder.path();
  const test::Finished done = test::run(words, options);
  KF_CHECK(done.status == 0, Code::other, "{}: {}{}", name, done.out, done.err);
  const std::vector<StepRow> rows = warm_rows(folder / ("runs/" + name + "/metrics.jsonl"));
  std::vector<double> speeds;
  for (const StepRow& row : rows) {
    speeds.push_back(row.tokens_per_sec);
  }
  return {8 * 128 / median(speeds), median_of(rows, row_key::comm_wait), median_of(rows, row_key::comm_time),
          median_of(rows, row_key::comm_bytes)};
}

}  // namespace

void bench_ranks() {
  const test::TempDir folder;
  folder.write("job.toml", kJob);
  std::string text;
  for (int i = 0; i < 4000; ++i) {
    text += "line " + std::to_string(i * 7 % 97) + " of a text that repeats itself, more or less; ";
  }
  folder.write("text/a.txt", text);
  const Measured one = measure(folder, 1, "one", {});
  std::printf("%-46s %10s %10s %12s %14s\n", "processes of one thread each", "ms a step", "of one's", "MB a step", "hidden calls");
  std::printf("%-46s %10.1f %10s\n", "one", 1000 * one.seconds, "1.00");
  const std::vector<std::pair<std::string, std::vector<std::string>>> layouts{
      {"two, dp_replicate", {"--distributed.dp_replicate=2", "--distributed.dp_shard=1"}},
      {"two, dp_replicate, prefetch off", {"--distributed.dp_replicate=2", "--distributed.dp_shard=1", "--distributed.prefetch=false"}},
      {"two, ZeRO-3", {"--distributed.zero_stage=3"}},
      {"two, ZeRO-3, prefetch off", {"--distributed.zero_stage=3", "--distributed.prefetch=false"}},
      {"two, ZeRO-3, gradients in bf16", {"--distributed.zero_stage=3", "--distributed.reduce_dtype=bf16"}}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const Measured two = measure(folder, 2, "two" + std::to_string(i), layouts[i].second);
    const double hidden = two.took_ms > 0 ? std::max(0.0, 1 - two.waited_ms / two.took_ms) : 0;
    std::printf("%-46s %10.1f %10.2f %12.2f %13.0f%%\n", layouts[i].first.c_str(), 1000 * two.seconds, two.seconds / one.seconds,
                two.bytes / 1e6, 100 * hidden);
  }
}

}  // namespace kf::bench
