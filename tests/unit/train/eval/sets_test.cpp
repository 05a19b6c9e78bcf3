// [[eval.datasets]] and the flat keys: what is read, by whom.

#include <set>

#include "config/schema/config.h"
#include "core/error.h"
#include "data/loader/eval_sets.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too, and SECTION one of config.h

namespace {

using Catch::Contains;
using kf::test::TempDir;

/// `windows` windows of 4 labels each: every id but the first is one, and the last is the document's end.
std::string text(std::size_t windows, char letter) { return std::string(windows * 4, letter); }

kf::config::Config job(const TempDir& folder) {
  kf::config::Config config;
  config.model.vocab_size = 257;
  config.train.seq_len = 4;
  config.train.batch_size = 2;
  config.eval.enabled = true;
  config.eval.interval = 10;
  config.eval.steps = -1;
  config.eval.dataset_path = folder.write("seven.txt", text(7, 'a')).string();
  return config;
}

std::multiset<std::int64_t> all_samples(const kf::config::Config& config, std::int64_t world) {
  std::multiset<std::int64_t> seen;
  std::int64_t batches = -1;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const auto sets = kf::make_eval_sets(config, {rank, world});
    CHECK((batches < 0 || batches == sets[0].data->batches_per_epoch()));  // ranks that wait for each other count alike
    batches = sets[0].data->batches_per_epoch();
    for (std::int64_t i = 0; i < batches; ++i) {
      const kf::Batch batch = sets[0].data->batch(i);
      seen.insert(batch.samples.begin(), batch.samples.end());
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("evaluation sets: every window is read once, on any number of ranks and with any batch size (H44)") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  config.eval.batch_size = GENERATE(0, 1, 2, 3, 100);
  const std::int64_t world = GENERATE(1, 2, 3, 7, 8, 20);
  CAPTURE(config.eval.batch_size, world);
  CHECK(all_samples(config, world) == std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("evaluation sets: a limit means the same windows on any number of ranks") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  config.eval.steps = 2;
  const std::int64_t world = GENERATE(1, 2, 3, 8);
  CAPTURE(world);
  CHECK(all_samples(config, world) == std::multiset<std::int64_t>{0, 1, 2, 3});
  config.eval.steps = std::numeric_limits<std::int64_t>::max();
  CHECK(all_samples(config, world).size() == 5);  // training's windows, which leave the ids between them out
  config.eval.steps = -1;
  CHECK(all_samples(config, world).size() == 7);  // of every label
}

TEST_CASE("evaluation sets: each has its name, limit and interval, and takes what it leaves out from [eval]") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  config.eval.steps = 1;
  kf::config::EvalDataset a;
  a.name = "a";
  a.path = folder.write("a.txt", text(5, 'a')).string();
  kf::config::EvalDataset b = a;
  b.name = "b";
  b.path = folder.write("b.jsonl", "{\"body\": \"0123456789012345678\"}\n").string();
  b.text_field = "body";
  b.steps = -1;
  b.interval = 30;
  config.eval.datasets = {a, b};
  const auto sets = kf::make_eval_sets(config, {});
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].name == "a");
  CHECK(sets[0].interval == 10);
  CHECK(sets[0].data->batches_per_epoch() == 1);
  CHECK(sets[1].interval == 30);
  CHECK(sets[1].data->batches_per_epoch() == 3);  // 19 labels
  CHECK(sets[1].data->batch(0).tokens[0][0].item<std::int64_t>() == '0');
}

TEST_CASE("evaluation sets: documents are packed as those of training, and kept apart where it is asked for") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  kf::config::EvalDataset set;
  set.name = "lines";
  set.path = folder.write("lines.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"c\"}\n").string();
  config.eval.datasets = {set};
  const auto batch_of = [&] { return kf::make_eval_sets(config, {})[0].data->batch(0); };
  const auto numbers = [](const at::Tensor& tensor) {
    return std::vector<std::int64_t>(tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel());
  };
  constexpr std::int64_t kEnd = 256, kNone = -100;
  CHECK_FALSE(batch_of().doc_ids.defined());
  CHECK(numbers(batch_of().tokens) == std::vector<std::int64_t>{'a', 'b', kEnd, 'c'});

  config.data.pack_sequences = true;  // concerns training alone, as in the reference
  CHECK_FALSE(batch_of().doc_ids.defined());
  config.eval.pack_sequences = true;
  CHECK(numbers(batch_of().doc_ids) == std::vector<std::int64_t>{0, 0, 0, 1});
  CHECK(numbers(batch_of().labels) == std::vector<std::int64_t>{'b', kEnd, kNone, kEnd});

  config.eval.pack_sequences = false;
  config.data.pack_method = "pad";
  CHECK(numbers(batch_of().tokens) == std::vector<std::int64_t>{'a', 'b', 0, 0, 'c', 0, 0, 0});
  CHECK(numbers(batch_of().labels) == std::vector<std::int64_t>{'b', kEnd, kNone, kNone, kEnd, kNone, kNone, kNone});

  config.data.pack_method = "best_fit";
  CHECK(numbers(batch_of().doc_ids) == std::vector<std::int64_t>{0, 0, 1, -1});
  CHECK(batch_of().counted == 3);
}

TEST_CASE("evaluation sets: a set that holds nothing is an error that names it") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  kf::config::EvalDataset a;
  a.name = "tiny";
  a.path = folder.write("a.txt", "").string();
  config.eval.datasets = {a};
  CHECK_THROWS_WITH(kf::make_eval_sets(config, {}), Contains("'tiny'") && Contains("a.txt"));
  config.eval.datasets[0].path = (folder / "none.txt").string();
  CHECK_THROWS_WITH(kf::make_eval_sets(config, {}), Contains("eval.datasets[0].path") && Contains("no such file"));
}

TEST_CASE("evaluation sets: every id but the first is a label once, behind up to seq_len ids, whatever the length and the batch size") {
  const TempDir folder;
  kf::config::Config config = job(folder);
  config.eval.batch_size = GENERATE(1, 3);
  const std::size_t bytes = GENERATE(range(std::size_t{1}, std::size_t{14}));
  const bool tokens = GENERATE(false, true);
  CAPTURE(bytes, tokens, config.eval.batch_size);
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < bytes; ++i) {
    ids.push_back(static_cast<std::int64_t>('a' + i));
  }
  if (tokens) {
    std::string raw;
    for (const std::int64_t id : ids) {
      raw += {static_cast<char>(id), 0};  // uint16
    }
    config.eval.dataset_path = folder.write("t.bin", raw).string();
    config.eval.file_pattern = "*.bin";
    if (bytes == 1) {
      CHECK_THROWS_WITH(kf::make_eval_sets(config, {}), Contains("two ids"));
      return;
    }
  } else {
    config.eval.dataset_path = folder.write("t.txt", std::string(ids.begin(), ids.end())).string();
    ids.push_back(256);
  }
  const auto sets = kf::make_eval_sets(config, {});
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < sets[0].data->batches_per_epoch(); ++i) {
    const kf::Batch batch = sets[0].data->batch(i);
    for (std::int64_t row = 0; row < batch.tokens.size(0); ++row) {
      for (std::int64_t t = 0; t < 4; ++t) {
        const auto label = batch.labels[row][t].item<std::int64_t>();
        if (label == kf::kIgnore) {
          CHECK(batch.doc_ids[row][t].item<std::int64_t>() == kf::kPadding);
          continue;
        }
        CHECK(batch.tokens[row][t].item<std::int64_t>() == ids[labels.size()]);  // the id before it
        CHECK((!batch.doc_ids.defined() || batch.doc_ids[row][t].item<std::int64_t>() == 0));
        labels.push_back(label);
      }
    }
  }
  CHECK(labels == std::vector<std::int64_t>(ids.begin() + 1, ids.end()));
}
