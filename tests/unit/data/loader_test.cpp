// Loaders: batches as a function of their number, sources and their errors, mixtures and phases, evaluation.

#include <ATen/ops/equal.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "config/schema/config.h"
#include "core/error.h"
#include "core/log.h"
#include "data/file/token_file.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "data/tokenizer/tokenizer.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too, and SECTION one of config.h

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::TokenType;
using kf::test::TempDir;

Ids counted(std::int64_t n, std::int64_t from = 0) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

/// seq_len 4 (windows of 5), batches of 2, a vocabulary of 512.
kf::config::Config small_job(const kf::fs::path& path = {}) {
  kf::config::Config config;
  config.model.vocab_size = 512;
  config.train.seq_len = 4;
  config.train.batch_size = 2;
  config.data.dataset_path = path.string();
  return config;
}

kf::config::DatasetSource source(const kf::fs::path& path, const std::string& name, double weight = 1.0) {
  kf::config::DatasetSource out;
  out.path = path.string();
  out.name = name;
  out.weight = weight;
  return out;
}

/// The loader of the one set of the flat keys.
std::unique_ptr<kf::Loader> only_set(const kf::config::Config& config, const kf::LoaderOptions& options) {
  std::vector<kf::EvalSet> sets = kf::make_eval_sets(config, options);
  REQUIRE(sets.size() == 1);
  return std::move(sets.front().data);
}

Ids samples_of(kf::Loader& loader, std::int64_t first, std::int64_t count) {
  Ids out;
  for (std::int64_t i = first; i < first + count; ++i) {
    const Ids samples = loader.batch(i).samples;
    out.insert(out.end(), samples.begin(), samples.end());
  }
  return out;
}

Ids values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().view(-1);
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// 0, 1, 2, ... below the vocabulary.
kf::fs::path tokens(const TempDir& folder, const std::string& name, std::int64_t count) {
  Ids ids = counted(count);
  for (std::int64_t& id : ids) {
    id %= 512;
  }
  kf::write_token_file(folder / name, ids, TokenType::uint16);
  return folder / name;
}

std::string train_error(const kf::config::Config& config, const kf::LoaderOptions& options = {}) {
  try {
    kf::make_train_loader(config, options);
  } catch (const kf::Error& error) {
    CHECK(error.code() == kf::Code::data);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("loader: a batch holds windows, and labels are the inputs one later") {
  const TempDir folder;
  const auto loader = kf::make_train_loader(small_job(tokens(folder, "a.npy", 50)), {});
  const kf::Batch batch = loader->batch(3);
  REQUIRE(batch.samples.size() == 2);
  for (std::size_t row = 0; row < 2; ++row) {
    CHECK(values(batch.tokens[static_cast<std::int64_t>(row)]) == counted(4, batch.samples[row] * 5));
    CHECK(values(batch.labels[static_cast<std::int64_t>(row)]) == counted(4, batch.samples[row] * 5 + 1));
  }
  CHECK(batch.counted == 8);
  CHECK_FALSE(batch.doc_ids.defined());
  CHECK(loader->describe() == "1 file, 228 B, 50 tokens (uint16)");
}

TEST_CASE("loader: each epoch is a permutation, epochs differ, and any batch can be reached at once (H19, H20)") {
  const TempDir folder;
  const kf::config::Config config = small_job(tokens(folder, "a.npy", 50));  // 10 sequences
  const auto straight = kf::make_train_loader(config, {});
  REQUIRE(straight->batches_per_epoch() == 5);
  const Ids all = samples_of(*straight, 0, 15);
  std::set<Ids> orders;
  for (std::ptrdiff_t epoch = 0; epoch < 3; ++epoch) {
    Ids order(all.begin() + epoch * 10, all.begin() + epoch * 10 + 10);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    CHECK(order == counted(10));
  }
  CHECK(orders.size() == 3);
  for (const std::int64_t stop : {3, 5, 7, 10, 12}) {
    const auto resumed = kf::make_train_loader(config, {});
    CHECK(samples_of(*resumed, stop, 15 - stop) == Ids(all.begin() + stop * 2, all.end()));
  }
  const auto twice = kf::make_train_loader(config, {});
  samples_of(*twice, 13, 1);
  CHECK(samples_of(*twice, 2, 1) == Ids(all.begin() + 4, all.begin() + 6));  // and back again
}

TEST_CASE("loader: the seed of the data decides the order, the seed of the weights only without one") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "a.npy", 200));
  const auto order = [&] { return samples_of(*kf::make_train_loader(config, {}), 0, 10); };
  config.train.data_seed = 7;
  const Ids seven = order();
  config.train.seed = 1;
  CHECK(order() == seven);
  config.train.data_seed.reset();
  config.train.seed = 7;
  CHECK(order() == seven);
  config.train.seed = 8;
  CHECK(order() != seven);
}

TEST_CASE("loader: the ranks together read what one rank with a larger batch reads") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "a.npy", 200));  // 40 windows
  const auto first = kf::make_train_loader(config, {0, 2});
  const auto second = kf::make_train_loader(config, {1, 2});
  config.train.batch_size = 4;
  const auto whole = kf::make_train_loader(config, {0, 1});
  CHECK(first->batches_per_epoch() == whole->batches_per_epoch());
  for (std::int64_t i = 0; i < 25; ++i) {
    const Ids a = first->batch(i).samples;
    const Ids b = second->batch(i).samples;
    CHECK(whole->batch(i).samples == Ids{a[0], b[0], a[1], b[1]});
  }
}

TEST_CASE("loader: packing keeps documents apart and needs to know where they end (H27)") {
  const TempDir folder;
  kf::write_token_file(folder / "a.npy", Ids{7, 8, 9, 0, 5, 6, 0, 1, 2, 3}, TokenType::uint16);
  kf::config::Config config = small_job(folder / "a.npy");
  config.data.pack_sequences = true;
  CHECK_THAT(train_error(config), Contains("data.eos_id"));
  config.data.eos_id = 600;
  CHECK_THAT(train_error(config), Contains("data.eos_id = 600"));
  config.data.eos_id = 0;
  const kf::Batch batch = kf::make_train_loader(config, {})->batch(0);
  const std::int64_t row = batch.samples[0] == 0 ? 0 : 1;
  CHECK(values(batch.tokens[row]) == Ids{7, 8, 9, 0});
  CHECK(values(batch.labels[row]) == Ids{8, 9, 0, kf::kIgnore});
  CHECK(values(batch.doc_ids[row]) == Ids{0, 0, 0, 0});
  CHECK(values(batch.labels[1 - row]) == Ids{0, kf::kIgnore, 2, 3});
  CHECK(values(batch.doc_ids[1 - row]) == Ids{0, 0, 1, 1});
  CHECK(batch.counted == 6);

  folder.write("t.txt", "abcdefghijkl");
  config.data.dataset_path = (folder / "t.txt").string();
  CHECK_THAT(train_error(config), Contains("data.eos_id = 0") && Contains("256"));
  config.data.eos_id.reset();
  CHECK(kf::make_train_loader(config, {})->batch(0).doc_ids.defined());
}

TEST_CASE("loader: a folder of text through a pattern, each real file once") {
  const TempDir folder;
  folder.write("sub/a.py", std::string(30, 'a'));
  folder.write("b.py", std::string(28, 'b'));
  folder.write("c.other", "c");
  kf::fs::create_symlink(folder / "b.py", folder / "link.py");
  kf::config::Config config = small_job(folder.path());
  config.data.file_pattern = "**/*.py";
  CHECK(kf::make_train_loader(config, {})->describe() == "2 files, 58 B of text, 60 tokens (bytes)");
  config.data.file_pattern = "*.npy";
  CHECK_THAT(train_error(config), Contains("data.file_pattern = \"*.npy\"") && Contains("it holds 3 files") && Contains("**/*"));
  config.model.vocab_size = 256;
  config.data.file_pattern = "*.py";
  CHECK_THAT(train_error(config), Contains("model.vocab_size = 256"));
}

TEST_CASE("loader: sources that cannot be read say why, and which key to change") {
  const TempDir folder;
  const auto path = tokens(folder, "a.npy", 50);
  folder.write("b.txt", "text enough for a window or two of this size");
  folder.write("c", "\xff\xff");
  kf::config::Config config = small_job("/no/such/folder");
  CHECK_THAT(train_error(config), Contains("data.dataset_path = \"/no/such/folder\"") && Contains("no such file"));
  config.data.dataset_path = folder.path().string();
  config.data.file_pattern = "*.{npy,txt}";
  CHECK_THAT(train_error(config), Contains("a.npy") && Contains("b.txt") && Contains("data.file_pattern"));
  config.data.file_pattern = "{b.txt,c}";
  CHECK_THAT(train_error(config), Contains("/c:1: not valid UTF-8") && Contains("narrow data.file_pattern"));
  config.data.file_pattern = "b.txt";
  config.data.tokenizer_path = "tok.json";
  CHECK_THAT(train_error(config), Contains("data.tokenizer_path = \"tok.json\""));
  CHECK_THROWS_WITH(kf::make_tokenizer(config, nullptr), Contains("data.tokenizer_path"));
  config.data.tokenizer_path = "";
  config.train.batch_size = 100;
  CHECK_THAT(train_error(config), Contains("fewer than a batch") && Contains("train.batch_size = 100"));
  config.data.file_pattern = "*.npy";
  config.train.batch_size = 6;
  CHECK_THAT(train_error(config, {0, 2}), Contains("5 samples for each rank"));
  config.data.holdout = 0.1;
  CHECK_THAT(train_error(config), Contains("data.holdout = 0.1") && Contains("token files"));
  config = small_job();
  ::setenv("HF_HUB_OFFLINE", "1", 1);  // nobody is asked
  config.data.hf_dataset_name = "org/set";
  CHECK_THAT(train_error(config), Contains("org/set"));
}

TEST_CASE("loader: an empty JSONL file holds no document") {
  const TempDir folder;
  CHECK_THAT(train_error(small_job(folder.write("e.jsonl", ""))), Contains("e.jsonl") && Contains("no document"));
}

TEST_CASE("loader: the hold-out is what evaluation reads, and training does not") {
  const TempDir folder;
  for (int i = 0; i < 200; ++i) {
    folder.write(std::to_string(i) + ".txt",
                 std::string{i < 100 ? 'a' : 'b', static_cast<char>(28 + i % 100), 'c', 'd'});  // with its end one window
  }
  kf::config::Config config = small_job(folder.path());
  config.data.file_pattern = "*.txt";
  config.data.holdout = 0.25;
  config.eval.enabled = true;
  config.eval.steps = 1000;
  const auto training = kf::make_train_loader(config, {});
  const auto held = only_set(config, {});
  const auto first_ids = [](kf::Loader& loader) {
    std::set<std::int64_t> ids;
    for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      const kf::Batch batch = loader.batch(i);
      const Ids first = values(batch.tokens.select(1, 0));
      const Ids second = values(batch.tokens.select(1, 1));
      for (std::size_t row = 0; row < first.size(); ++row) {
        ids.insert(first[row] * 256 + second[row]);
      }
    }
    return ids;
  };
  const auto a = first_ids(*training);
  const auto b = first_ids(*held);
  CHECK(a.size() + b.size() >= 199);  // an odd one out is less than a batch
  CHECK(b.size() > 25);
  for (const std::int64_t id : b) {
    CHECK(a.count(id) == 0);
  }
  CHECK_THAT(training->describe(), Contains("; 25 % held out"));
  config.data.holdout = 0;
  CHECK_THROWS_WITH(kf::make_eval_sets(config, {}), Contains("eval.dataset_path") && Contains("data.holdout"));
  config.eval.enabled = false;
  CHECK(kf::make_eval_sets(config, {}).empty());
}

TEST_CASE("evaluation: every window once and in order, the last batch short, at most eval.steps batches") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.eval.enabled = true;
  config.eval.dataset_path = tokens(folder, "e.npy", 35).string();  // 7 windows of a number of batches
  const auto loader = only_set(config, {});
  REQUIRE(loader->batches_per_epoch() == 4);
  CHECK(samples_of(*loader, 0, 4) == counted(7));
  CHECK(loader->batch(3).tokens.sizes() == at::IntArrayRef{1, 4});
  CHECK(loader->batch(3).counted == 4);
  CHECK_FALSE(loader->batch(0).doc_ids.defined());
  CHECK_THROWS_AS(loader->batch(4), kf::Error);

  config.eval.pack_sequences = true;
  CHECK_THROWS_WITH(kf::make_eval_sets(config, {}), Contains("eval.pack_sequences = true needs data.eos_id"));
  config.eval.pack_sequences = false;

  const auto first = only_set(config, {0, 2});
  const auto second = only_set(config, {1, 2});
  REQUIRE(first->batches_per_epoch() == 2);
  REQUIRE(second->batches_per_epoch() == 2);
  CHECK(samples_of(*first, 0, 2) == Ids{0, 2, 4, 6});
  CHECK(samples_of(*second, 0, 2) == Ids{1, 3, 5});
  const auto idle = only_set(config, {7, 8});
  CHECK(idle->batch(0).tokens.sizes() == at::IntArrayRef{0, 4});
  CHECK(idle->batch(0).counted == 0);

  config.eval.steps = 3;
  CHECK(only_set(config, {})->batches_per_epoch() == 3);
}

TEST_CASE("mixture: counts follow the weights and nothing is repeated before its source is used up (H22)") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.train.batch_size = 1;
  config.data.datasets = {source(tokens(folder, "a.npy", 5 * 300), "a", 0.1), source(tokens(folder, "b.npy", 5 * 300), "b", 0.2),
                          source(tokens(folder, "c.npy", 5 * 400), "c", 0.69999994)};
  const auto loader = kf::make_train_loader(config, {});
  REQUIRE(loader->batches_per_epoch() == 1000);
  const Ids samples = samples_of(*loader, 0, 1000);
  const auto drawn = [&](std::int64_t from, std::int64_t to) {
    std::map<std::int64_t, std::int64_t> times;
    for (const std::int64_t sample : samples) {
      if (from <= sample && sample < to) {
        ++times[sample];
      }
    }
    return times;
  };
  const auto total = [](const std::map<std::int64_t, std::int64_t>& times) {
    return std::accumulate(times.begin(), times.end(), std::int64_t{0}, [](std::int64_t sum, const auto& one) { return sum + one.second; });
  };
  CHECK(std::abs(total(drawn(0, 300)) - 100) <= 1);
  CHECK(drawn(0, 300).size() == static_cast<std::size_t>(total(drawn(0, 300))));  // none twice
  CHECK(std::abs(total(drawn(300, 600)) - 200) <= 1);
  const auto third = drawn(600, 1000);
  CHECK(std::abs(total(third) - 700) <= 1);
  CHECK(third.size() == 400);
  CHECK(std::all_of(third.begin(), third.end(), [](const auto& one) { return one.second == 1 || one.second == 2; }));
  CHECK_THAT(loader->describe(), Contains("a: 1 file") && Contains("c: 1 file"));
}

TEST_CASE("mixture: a source of one sample works, for every number of ranks (H22)") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.data.datasets = {source(tokens(folder, "a.npy", 5 * 200), "a", 1.0), source(tokens(folder, "one.npy", 5), "one", 0.02)};
  for (const std::int64_t world : {1, 2, 3}) {
    const auto loader = kf::make_train_loader(config, {world - 1, world});
    const Ids samples = samples_of(*loader, 0, loader->batches_per_epoch());
    CHECK(std::count(samples.begin(), samples.end(), 200) >= 1);
  }
}

TEST_CASE("mixture: faults of its sources and phases are named (H21)") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.data.datasets = {source(tokens(folder, "a.npy", 100), "a"), source(tokens(folder, "b.npy", 100), "b")};
  config.data.phases = {{5, {{"a", 0.0}, {"b", 0.0}}, 1.0}};
  CHECK_THAT(train_error(config), Contains("sum to > 0") && Contains("data.phases[0] (start_step = 5)"));
  config.data.phases = {{5, {{"a", 0.0}, {"b", 1.0}}, 0.5}};
  const auto loader = kf::make_train_loader(config, {});
  const Ids later = samples_of(*loader, 5, 10);
  CHECK(std::all_of(later.begin(), later.end(), [](std::int64_t sample) { return sample >= 20; }));
  config.data.phases = {{5, {{"web", 1.0}}, 1.0}};
  CHECK_THAT(train_error(config), Contains("no data set 'web'") && Contains("have: a, b"));
  config.data.phases = {};
  config.data.datasets[1].name = "a";
  CHECK_THAT(train_error(config), Contains("both called 'a'"));
  config.data.datasets[1] = {};
  config.data.datasets[1].hf_name = "org/set";
  CHECK_THAT(train_error(config), Contains("org/set"));
  config = small_job(folder / "a.npy");
  config.data.phases = {{5, {{"a", 1.0}}, 1.0}};
  CHECK_THAT(train_error(config), Contains("there is no mixture"));
}

TEST_CASE("phases: the annealing shortcut is one phase, and one without weights leaves the order as it is") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.data.datasets = {source(tokens(folder, "a.npy", 100), "a"), source(tokens(folder, "b.npy", 100), "b")};
  config.data.anneal_start_step = 3;
  config.data.anneal_weights = {{"a", 9.0}};
  const Ids shortcut = samples_of(*kf::make_train_loader(config, {}), 0, 30);
  config.data.anneal_start_step = 0;
  config.data.phases = {{3, {{"a", 9.0}}, 1.0}};
  CHECK(samples_of(*kf::make_train_loader(config, {}), 0, 30) == shortcut);
  config.data.phases = {};
  CHECK(samples_of(*kf::make_train_loader(config, {}), 0, 30) != shortcut);

  kf::config::Config plain = small_job(folder / "a.npy");
  const Ids order = samples_of(*kf::make_train_loader(plain, {}), 0, 30);
  plain.data.phases = {{2, {}, 0.5}, {6, {}, 0.25}};
  CHECK(samples_of(*kf::make_train_loader(plain, {}), 0, 30) == order);
}

TEST_CASE("phases: an epoch that is just used up is still the current one at a switch") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.data.datasets = {source(tokens(folder, "a.npy", 20), "a"), source(tokens(folder, "b.npy", 20), "b")};  // 4 batches an epoch
  const Ids straight = samples_of(*kf::make_train_loader(config, {}), 0, 12);
  config.data.phases = {{4, {}, 1.0}};  // the same weights: the same orders, begun again
  const Ids begun_again = samples_of(*kf::make_train_loader(config, {}), 0, 12);
  CHECK(Ids(begun_again.begin() + 8, begun_again.begin() + 24) == Ids(straight.begin(), straight.begin() + 16));
}

TEST_CASE("loader: a batch size that changes goes on in the order, so that no sample comes twice in an epoch") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "a.npy", 200));
  const auto straight = kf::make_train_loader(config, {});
  const auto changed = kf::make_train_loader(config, {});
  const std::int64_t size = config.train.batch_size;
  changed->change(3, {std::nullopt, 2 * size, std::nullopt});
  const Ids first = samples_of(*straight, 0, 9);
  Ids other = samples_of(*changed, 0, 6);
  CHECK(other == first);
  CHECK(static_cast<std::int64_t>(changed->batch(3).samples.size()) == 2 * size);
  CHECK(samples_of(*changed, 0, 6) == first);  // any batch at any time
}

TEST_CASE("loader: other weights begin a new order, another seq_len the next epoch of its own windows") {
  const TempDir folder;
  kf::config::Config config = small_job();
  config.data.datasets = {source(tokens(folder, "a.npy", 100), "a"), source(tokens(folder, "b.npy", 100), "b")};
  const auto loader = kf::make_train_loader(config, {});
  const Ids before = samples_of(*loader, 0, 4);
  loader->change(4, {std::map<std::string, double>{{"a", 9.0}}, std::nullopt, std::nullopt});
  CHECK(samples_of(*loader, 0, 4) == before);
  config.data.phases = {{4, {{"a", 9.0}}, 1.0}};
  CHECK(samples_of(*loader, 4, 12) == samples_of(*kf::make_train_loader(config, {}), 4, 12));
  loader->change(12, {std::nullopt, std::nullopt, config.train.seq_len / 2});
  CHECK(loader->batch(12).tokens.size(1) == config.train.seq_len / 2);
  CHECK(loader->batch(11).tokens.size(1) == config.train.seq_len);
  CHECK_THROWS_WITH(loader->change(3, {std::nullopt, 1, std::nullopt}), Contains("comes too late"));
  CHECK_THROWS_WITH(loader->check({std::map<std::string, double>{{"web", 1.0}}, std::nullopt, std::nullopt}),
                    Contains("no data set 'web' in the mixture"));
}

TEST_CASE("loader: without data the ids are random, known by their number, and the log says so") {
  kf::config::Config config = small_job();
  const std::size_t warned = kf::log::count(kf::log::Level::warn);
  const auto loader = kf::make_train_loader(config, {});
  CHECK(kf::log::count(kf::log::Level::warn) == warned + 1);
  const kf::Batch batch = loader->batch(5);
  CHECK(at::equal(batch.tokens, kf::make_train_loader(config, {})->batch(5).tokens));
  CHECK_FALSE(at::equal(batch.tokens, loader->batch(6).tokens));
  CHECK(at::equal(batch.tokens.narrow(1, 1, 3), batch.labels.narrow(1, 0, 3)));
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 400; ++i) {
    for (const std::int64_t id : values(loader->batch(i).tokens)) {
      REQUIRE(id >= 0);
      REQUIRE(id < 512);
      seen.insert(id);
    }
  }
  CHECK(seen.size() > 490);
  CHECK_THAT(loader->describe(), Contains("synthetic"));
}

TEST_CASE("loader: data.datasets wins over data.dataset_path") {
  const TempDir folder;
  kf::config::Config config = small_job("/no/such/folder");
  config.data.datasets = {source(tokens(folder, "a.npy", 100), "a")};
  CHECK(kf::make_train_loader(config, {})->batches_per_epoch() == 10);
}

TEST_CASE("loader: fingerprints tell data apart") {
  const TempDir folder;
  kf::config::Config config = small_job(tokens(folder, "a.npy", 50));
  const std::string first = kf::make_train_loader(config, {})->fingerprint();
  config.train.batch_size = 1;
  CHECK(kf::make_train_loader(config, {})->fingerprint() == first);
  config.data.dataset_path = tokens(folder, "b.npy", 55).string();
  CHECK(kf::make_train_loader(config, {})->fingerprint() != first);
}
