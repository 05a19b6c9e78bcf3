#include "bench/data_bench.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>

#include "bench/compare.h"
#include "config/schema/config.h"
#include "core/error.h"
#include "core/feistel.h"
#include "data/documents/documents.h"
#include "data/file/token_file.h"
#include "data/loader/loader.h"
#include "data/order/block_mixture.h"
#include "data/sequence/pack_table.h"
#include "metrics/memory.h"
#include "support/temp_dir.h"

namespace kf::bench {
namespace {

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

config::Config job(const fs::path& tokens, std::int64_t seq_len, std::int64_t batch_size) {
  config::Config config;
  config.model.vocab_size = 60'000;
  config.train.seq_len = seq_len;
  config.train.batch_size = batch_size;
  config.data.dataset_path = tokens.string();
  config.data.shuffle = "permutation";
  return config;
}

/// The share of the time that a step of this length waits for its batch: the step stands for itself by products on this thread.
void waiting(const fs::path& tokens, std::int64_t seq_len, std::int64_t batch_size) {
  const auto loader = make_train_loader(job(tokens, seq_len, batch_size), {});
  const at::Tensor a = at::randn({384, 384});
  const auto step = [&] {
    for (int i = 0; i < 10; ++i) {
      at::mm(a, a);
    }
  };
  double waited = 0;
  double worked = 0;
  loader->batch(0);
  for (std::int64_t i = 1; i <= 200; ++i) {
    worked += seconds_of(step);
    std::optional<Batch> batch;  // its end is not waiting
    waited += seconds_of([&] { batch = loader->batch(i); });
  }
  std::printf("data: steps of %.1f ms with batches of %lld x %lld tokens wait %.3f ms for them, %.2f %% of the time\n", worked / 200 * 1e3,
              static_cast<long long>(batch_size), static_cast<long long>(seq_len), waited / 200 * 1e3, 100 * waited / (waited + worked));
}

void memory(const fs::path& tokens) {
  const auto loader = make_train_loader(job(tokens, 128, 4), {});
  for (std::int64_t i = 0; i < 5'000; ++i) {
    loader->batch(i);
  }
  const std::int64_t before = memory_bytes(at::kCPU);
  const double seconds = seconds_of([&] {
    for (std::int64_t i = 5'000; i < 105'000; ++i) {
      loader->batch(i);
    }
  });
  std::printf("data: 100,000 batches of 4 x 128 tokens in %.1f s; memory grew by %.1f MB\n", seconds,
              static_cast<double>(memory_bytes(at::kCPU) - before) / 1e6);
}

void orders() {
  const Feistel places(1'000'000'000'000, 7);
  std::int64_t sum = 0;
  const double each = seconds_of([&] {
    for (std::int64_t i = 0; i < 2'000'000; ++i) {
      sum += places.at(i);
    }
  });
  std::printf("order: one index of a permutation of 10^12 takes %.0f ns (%lld)\n", each / 2e6 * 1e9, static_cast<long long>(sum % 10));
  BlockMixture mixture(std::vector<std::int64_t>(10, 1'000'000'000), {5, 4, 3, 2, 1, 1, 0.5, 0.1, 0.01, 0.001}, {2048, 1});
  std::vector<Draw> draw(1);
  const double seek = seconds_of([&] { mixture.read(2'000'000'000, 1, draw); });
  std::printf("order: sequence 2 * 10^9 of a mixture of ten sources is reached in %.2f s\n", seek);
}

void packing() {
  std::mt19937 random(1);
  std::lognormal_distribution<double> length(6, 1);
  MemoryDocuments documents;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 200'000; ++i) {
    ids.assign(static_cast<std::size_t>(length(random)) + 2, 1);
    documents.add(ids, 0);
  }
  PackOptions options;
  options.seq_len = 4096;
  const double seconds = seconds_of([&] { std::printf("packing: %s", PackTable(documents, options).describe().c_str()); });
  std::printf("; %.2f s a million documents\n", seconds * 5);
}

}  // namespace

void bench_data() {
  const test::TempDir folder;
  std::vector<std::int64_t> ids(16'000'000);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(i % 60'000);
  }
  write_token_file(folder / "t.npy", ids, TokenType::uint16);
  waiting(folder / "t.npy", 512, 8);
  waiting(folder / "t.npy", 8192, 2);
  waiting(folder / "t.npy", 131'072, 1);
  const auto loader = make_train_loader(
      [&] {
        config::Config config = job(folder / "t.npy", 131'072, 1);
        config.data.num_workers = 0;
        return config;
      }(),
      {});
  const at::Tensor from = at::ones({131'072}, at::kLong);
  at::Tensor to = at::empty({2, 131'072}, at::kLong);
  std::int64_t next = 0;
  compare("data", {"a batch of one sequence of 131,072 tokens, without threads", [&] { loader->batch(next++); }},
          {"writing its inputs and labels", [&] { to.copy_(from); }});
  memory(folder / "t.npy");
  orders();
  packing();
}

}  // namespace kf::bench
