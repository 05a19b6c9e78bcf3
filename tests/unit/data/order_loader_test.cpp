// The loader's orders: the same global order on any number of ranks and batches, mixtures in blocks, ends, threads and their errors.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "config/schema/config.h"
#include "core/error.h"
#include "core/log.h"
#include "data/file/token_file.h"
#include "data/loader/loader.h"
#include "data/loader/prefetch.h"
#include "metrics/memory.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too, and SECTION one of config.h

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::test::TempDir;

kf::fs::path tokens(const TempDir& folder, const std::string& name, std::int64_t windows) {
  Ids ids(static_cast<std::size_t>(windows * 5));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  for (std::int64_t& id : ids) {
    id %= 512;
  }
  kf::write_token_file(folder / name, ids, kf::TokenType::uint16);
  return folder / name;
}

kf::config::Config small_job(const kf::fs::path& path = {}) {
  kf::config::Config config;
  config.model.vocab_size = 512;
  config.train.seq_len = 4;
  config.train.batch_size = 2;
  config.data.dataset_path = path.string();
  return config;
}

kf::config::Config two_sources(const TempDir& folder, std::int64_t a, std::int64_t b) {
  kf::config::Config config = small_job();
  config.data.datasets.resize(2);
  config.data.datasets[0].name = "a";
  config.data.datasets[0].path = tokens(folder, "a.npy", a).string();
  config.data.datasets[0].weight = 0.25;
  config.data.datasets[1].name = "b";
  config.data.datasets[1].path = tokens(folder, "b.npy", b).string();
  config.data.datasets[1].weight = 0.75;
  config.data.mix_block = 16;
  return config;
}

/// Samples of updates first, first + 1, ... of `micros` micro-batches over all ranks, in the global order.
Ids global_order(kf::config::Config config, std::int64_t world, std::int64_t batch_size, std::int64_t micros, std::int64_t first,
                 std::int64_t updates) {
  config.train.batch_size = batch_size;
  config.train.grad_accum_steps = micros;
  std::vector<std::unique_ptr<kf::Loader>> ranks;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    ranks.push_back(kf::make_train_loader(config, {rank, world}));
  }
  Ids out;
  for (std::int64_t micro = first * micros; micro < (first + updates) * micros; ++micro) {
    std::vector<Ids> batches;
    for (const auto& rank : ranks) {
      batches.push_back(rank->batch(micro).samples);
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch_size); ++row) {
      for (const Ids& batch : batches) {
        out.push_back(batch[row]);
      }
    }
  }
  return out;
}

Ids samples_of(kf::Loader& loader, std::int64_t first, std::int64_t count) {
  Ids out;
  for (std::int64_t i = first; i < first + count; ++i) {
    const Ids samples = loader.batch(i).samples;
    out.insert(out.end(), samples.begin(), samples.end());
  }
  return out;
}

std::string error_of(const kf::config::Config& config) {
  try {
    kf::make_train_loader(config, {});
  } catch (const kf::Error& error) {
    return error.what();
  }
  return "no error";
}

/// Batches numbered by their first sample; some cannot be made.
kf::Prefetch::Task numbered(std::int64_t index, std::int64_t broken = -1) {
  return [=] {
    KF_CHECK(index != broken, kf::Code::data, "batch {} is broken", index);
    kf::Batch batch;
    batch.samples = {index};
    return batch;
  };
}

}  // namespace

TEST_CASE("loader: orders by arithmetic are the same on any ranks, batches and micro-batches, over the ends of epochs") {
  const TempDir folder;
  const bool mixture = GENERATE(false, true);
  kf::config::Config config = mixture ? two_sources(folder, 9, 14) : small_job(tokens(folder, "t.npy", 23));  // 23 is no multiple of 12
  config.data.shuffle = GENERATE("permutation", "block", "window", "none");
  config.data.shuffle_window = 6;
  CAPTURE(config.data.shuffle, mixture);
  const Ids all = global_order(config, 1, 12, 1, 0, 10);
  CHECK(global_order(config, 1, 3, 4, 0, 10) == all);
  CHECK(global_order(config, 2, 3, 2, 0, 10) == all);
  CHECK(global_order(config, 3, 4, 1, 0, 10) == all);
  CHECK(global_order(config, 12, 1, 1, 0, 10) == all);
  CHECK(global_order(config, 4, 1, 3, 7, 3) == Ids(all.begin() + 84, all.end()));  // and from the middle on
  if (!mixture) {
    for (std::ptrdiff_t epoch = 0; epoch < 5; ++epoch) {
      CHECK(std::set<std::int64_t>(all.begin() + epoch * 23, all.begin() + (epoch + 1) * 23).size() == 23);  // nothing is dropped
    }
  }
}

TEST_CASE("loader: torch's order is the same on any ranks within an epoch") {
  const TempDir folder;
  const kf::config::Config config = small_job(tokens(folder, "t.npy", 48));
  const Ids all = global_order(config, 1, 12, 1, 0, 8);
  CHECK(global_order(config, 2, 3, 2, 0, 8) == all);
  CHECK(global_order(config, 4, 3, 1, 0, 8) == all);
  CHECK(global_order(config, 12, 1, 1, 0, 8) == all);
}

TEST_CASE("loader: the data end after data.epochs, in torch's order at the last whole batch of each epoch") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "t.npy", 23));
  CHECK(kf::make_train_loader(config, {})->end() == kf::Loader::kEndless);
  config.data.epochs = 3;
  CHECK(kf::make_train_loader(config, {})->end() == 33);
  config.data.shuffle = "permutation";
  const auto loader = kf::make_train_loader(config, {});
  CHECK(loader->end() == 34);  // 69 sequences
  Ids all = samples_of(*loader, 0, 34);
  for (std::int64_t sample = 0; sample < 23; ++sample) {
    CHECK(std::count(all.begin(), all.end(), sample) >= 2);
  }
  CHECK(kf::make_train_loader(config, {1, 2})->end() == 17);
  config.data.phases = {{2, {}, 0.5}, {1000, {}, 0.25}};
  CHECK(kf::make_train_loader(config, {})->end() == 34);
  config.data.reuse_batches = 2;
  CHECK(kf::make_train_loader(config, {})->end() == kf::Loader::kEndless);
}

TEST_CASE("mixture: in blocks, phases take over where each source is, and the first source that is used up can end the run (H22)") {
  const TempDir folder;
  kf::config::Config config = two_sources(folder, 100, 100);
  config.data.shuffle = "none";
  config.data.phases = {{3, {{"a", 1.0}, {"b", 0.0}}, 0.5}, {5, {}, 1.0}};
  const auto loader = kf::make_train_loader(config, {});
  const Ids all = samples_of(*loader, 0, 40);
  Ids a;
  Ids b;
  for (const std::int64_t sample : all) {
    (sample < 100 ? a : b).push_back(sample);
  }
  CHECK(std::all_of(all.begin() + 6, all.begin() + 10, [](std::int64_t sample) { return sample < 100; }));
  CHECK(std::is_sorted(a.begin(), a.end()));
  CHECK(std::is_sorted(b.begin(), b.end()));
  CHECK(a.front() == 0);
  CHECK(b.front() == 100);
  CHECK(a.back() == static_cast<std::int64_t>(a.size()) - 1);  // none left out, none twice
  CHECK(b.back() == 99 + static_cast<std::int64_t>(b.size()));
  CHECK(loader->sources() == std::vector<std::string>{"a", "b"});
  const kf::Batch batch = loader->batch(3);
  CHECK(batch.sources == Ids{0, 0});
  const std::vector<double> passes = loader->passes(40);
  CHECK(passes[0] == Approx(static_cast<double>(a.size()) / 100));
  CHECK(passes[1] == Approx(static_cast<double>(b.size()) / 100));

  config.data.phases = {};
  config.data.mix_stop = "first";
  const auto first = kf::make_train_loader(config, {});
  const std::int64_t end = first->end();
  CHECK(end == Approx(133 / 2).margin(8));  // b has 3 of 4
  const Ids until = samples_of(*first, 0, end);
  CHECK(std::set<std::int64_t>(until.begin(), until.end()).size() == until.size());
  config.data.mix_stop = "drop";
  CHECK(kf::make_train_loader(config, {})->end() == 100);
  config.data.phases = {{3, {{"c", 1.0}}, 1.0}};
  CHECK_THAT(error_of(config), Contains("no data set 'c'") && Contains("data.phases[0] (start_step = 3)"));
}

TEST_CASE("mixture: in blocks, a change while the run goes on keeps what was read, and adding a source keeps the orders of the others") {
  const TempDir folder;
  kf::config::Config config = two_sources(folder, 50, 50);
  config.data.shuffle = "permutation";
  const auto loader = kf::make_train_loader(config, {});
  const Ids before = samples_of(*loader, 0, 10);
  samples_of(*loader, 10, 1);  // the threads are ahead by now
  loader->change(10, {{{{"a", 1.0}, {"b", 0.0}}}, {}, {}});
  const Ids after = samples_of(*loader, 10, 5);
  CHECK(std::all_of(after.begin(), after.end(), [](std::int64_t sample) { return sample < 50; }));
  CHECK(samples_of(*loader, 0, 10) == before);
  Ids a;
  for (const std::int64_t sample : before) {
    if (sample < 50) {
      a.push_back(sample);
    }
  }
  a.insert(a.end(), after.begin(), after.end());
  CHECK(std::set<std::int64_t>(a.begin(), a.end()).size() == a.size());

  const auto order_of_a = [](kf::Loader& some) {
    Ids out;
    for (const std::int64_t sample : samples_of(some, 0, 60)) {
      if (sample < 50) {
        out.push_back(sample);
      }
    }
    out.resize(15);
    return out;
  };
  const Ids alone = order_of_a(*kf::make_train_loader(config, {}));
  config.data.datasets.push_back(config.data.datasets[1]);
  config.data.datasets.back().name = "c";
  CHECK(order_of_a(*kf::make_train_loader(config, {})) == alone);
}

TEST_CASE("loader: a simulated run reads a part, always the same, and repeats it as the large run would repeat all") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "t.npy", 100));
  config.data.simulate_tokens = 1000;
  config.data.target_tokens = 10'000;
  const auto loader = kf::make_train_loader(config, {});
  CHECK(loader->batches_per_epoch() == 5);
  CHECK_THAT(loader->describe(), Contains("10 of 100 sequences"));
  std::set<std::int64_t> first_ids;
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t row = 0; row < 2; ++row) {
      first_ids.insert(loader->batch(i).tokens[row][0].item<std::int64_t>());
    }
  }
  CHECK(first_ids.size() == 10);
  config.data.simulate_tokens = 10;
  CHECK_THAT(error_of(config), Contains("data.simulate_tokens / data.target_tokens") && Contains("of 100 samples"));
}

TEST_CASE("loader: reuse_batches repeats the first micro-batches") {
  const TempDir folder;
  kf::config::Config config = small_job(GENERATE(true, false) ? tokens(folder, "t.npy", 100) : kf::fs::path());
  config.data.reuse_batches = 3;
  const auto loader = kf::make_train_loader(config, {});
  const Ids first = samples_of(*loader, 0, 3);
  CHECK(samples_of(*loader, 3, 3) == first);
  CHECK(samples_of(*loader, 300, 3) == first);
}

TEST_CASE("loader: threads change nothing: neither order nor content, and every thread count agrees (H19)") {
  const TempDir folder;
  kf::config::Config config = two_sources(folder, 30, 40);
  config.data.num_workers = 0;
  const auto plain = kf::make_train_loader(config, {});
  for (const std::int64_t workers : {1, 2, 5}) {
    config.data.num_workers = workers;
    config.data.prefetch_factor = 3;
    const auto ahead = kf::make_train_loader(config, {});
    for (const std::int64_t i : {0, 1, 2, 3, 40, 41, 7, 7, 8, 9, 10, 0}) {
      const kf::Batch a = plain->batch(i);
      const kf::Batch b = ahead->batch(i);
      CHECK(a.samples == b.samples);
      CHECK(a.sources == b.sources);
      CHECK(a.tokens.equal(b.tokens));
      CHECK(a.labels.equal(b.labels));
    }
  }
}

TEST_CASE("prefetch: batches come in order, an error with its own batch, and it goes on behind it") {
  kf::Prefetch prefetch(3, 8);
  const auto plan = [](std::int64_t index) { return numbered(index, 5); };
  for (std::int64_t i = 0; i < 200; ++i) {
    if (i == 5) {
      CHECK_THROWS_WITH(prefetch.get(i, 200, plan), Contains("batch 5 is broken"));
    } else {
      REQUIRE(prefetch.get(i, 200, plan).samples == Ids{i});
    }
  }
  const auto unplanned = [](std::int64_t index) {
    KF_CHECK(index < 3, kf::Code::data, "batch {} cannot be", index);
    return numbered(index);
  };
  CHECK(prefetch.get(1, 1000, unplanned).samples == Ids{1});
  CHECK(prefetch.get(2, 1000, unplanned).samples == Ids{2});
  CHECK_THROWS_WITH(prefetch.get(3, 1000, unplanned), Contains("batch 3 cannot be"));
}

TEST_CASE("prefetch: no more than asked is made ahead, none behind the end, and what was made is dropped on demand") {
  std::set<std::int64_t> planned;
  const auto plan = [&](std::int64_t index) {
    planned.insert(index);
    return numbered(index);
  };
  kf::Prefetch prefetch(2, 4);
  prefetch.get(0, 6, plan);
  CHECK(planned == std::set<std::int64_t>{0, 1, 2, 3, 4});
  prefetch.get(1, 6, plan);
  prefetch.get(2, 6, plan);
  CHECK(planned.size() == 5);  // half of them are still there
  prefetch.get(3, 6, plan);
  CHECK(planned == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
  prefetch.clear();
  planned.clear();
  CHECK(prefetch.get(4, 100, plan).samples == Ids{4});
  CHECK(planned == std::set<std::int64_t>{4, 5, 6, 7, 8});
}

TEST_CASE("prefetch: batches that take long are made by all threads at once") {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> began;
  bool given_up = false;
  const std::thread::id asking = std::this_thread::get_id();
  // Each thread's first batch is a long one, its second waits for the other threads: who never comes leaves it waiting, whatever else the
  // machine does meanwhile.
  const auto task = [&](std::int64_t index) -> kf::Prefetch::Task {
    return [&, index] {
      if (std::this_thread::get_id() != asking) {
        std::unique_lock lock(mutex);
        if (began.insert(std::this_thread::get_id()).second) {
          changed.notify_all();
          lock.unlock();
          const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
          while (std::chrono::steady_clock::now() < until) {
          }
        } else {
          changed.wait(lock, [&] { return began.size() == 3 || given_up; });
        }
      }
      return numbered(index)();
    };
  };
  kf::Prefetch prefetch(3, 12);
  REQUIRE(prefetch.get(0, 1000, task).samples == Ids{0});
  {
    std::unique_lock lock(mutex);
    given_up = !changed.wait_for(lock, std::chrono::minutes(2), [&] { return began.size() == 3; });
    CHECK(began.size() == 3);
  }
  changed.notify_all();
  for (std::int64_t i = 1; i < 60; ++i) {
    REQUIRE(prefetch.get(i, 1000, task).samples == Ids{i});
  }
}

TEST_CASE("loader: memory stays flat, whatever the number of batches") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "t.npy", 5000));
  config.data.shuffle = "permutation";
  const auto loader = kf::make_train_loader(config, {});
  samples_of(*loader, 0, 3000);
  const std::int64_t before = kf::memory_bytes(at::kCPU);
  samples_of(*loader, 3000, 30'000);
#if defined(__has_feature) && __has_feature(address_sanitizer)
  constexpr std::int64_t kFlat = 8'000'000;  // freed memory is kept in quarantine
#else
  constexpr std::int64_t kFlat = 2'000'000;
#endif
  CHECK(kf::memory_bytes(at::kCPU) - before < kFlat);
}

TEST_CASE("prefetch: destruction with work in hand and in line does not hang") {
  for (int i = 0; i < 50; ++i) {
    kf::Prefetch prefetch(4, 64);
    prefetch.get(0, 1000, [](std::int64_t index) { return numbered(index); });
  }
}
