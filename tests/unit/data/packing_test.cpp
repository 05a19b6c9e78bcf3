// Packed documents: what a row holds, and that a model learns from it what it would learn from the documents alone (H27, H28).

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "data/file/token_file.h"
#include "data/loader/loader.h"
#include "data/sequence/collate.h"
#include "data/sequence/packed_dataset.h"
#include "data/sequence/stream_dataset.h"
#include "data/sequence/token_documents.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too

using namespace kf;
using namespace kf::test;

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kEnd = 0;

struct Row {
  Ids tokens, labels, doc_ids;
};

Row row_of(const Dataset& data, std::int64_t index, std::size_t seq_len, bool apart = true) {
  Row row{Ids(seq_len), Ids(seq_len), Ids(apart ? seq_len : 0)};
  data.row(index, std::nullopt, {row.tokens, row.labels, row.doc_ids});
  return row;
}

std::shared_ptr<MemoryDocuments> documents(const std::vector<Ids>& all, const std::vector<std::vector<std::uint8_t>>& masks = {}) {
  auto out = std::make_shared<MemoryDocuments>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    out->add(all[i], i, masks.empty() ? std::vector<std::uint8_t>() : masks[i]);
  }
  return out;
}

PackOptions best_fit(std::int64_t seq_len) {
  PackOptions options;
  options.seq_len = seq_len;
  return options;
}

Ids random_document(std::int64_t length, std::uint64_t seed) {
  const at::Tensor ids = random_tokens(1, length, seed).clamp_min(1);
  Ids out(ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + length);
  out.back() = kEnd;
  return out;
}

/// What one update of a fresh model is from these rows: the loss, and the gradient behind it (lr 0 keeps the weights).
struct Learned {
  double loss = 0;
  std::int64_t counted = 0;
  std::vector<at::Tensor> gradients;
};

Learned learn(const config::Config& config, const Dataset& data, const Ids& samples) {
  Bench bench(config);
  FixedLoader loader({collate(data, samples, {config.train.seq_len, true, std::nullopt, false})});
  Learned out;
  const StepResult result = bench.step(loader, 0, 0, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      out.gradients.push_back(parameter->gradient().clone());
    }
  });
  out.loss = result.ce;
  out.counted = result.counted;
  return out;
}

}  // namespace

TEST_CASE("packing: a row holds whole documents side by side, the end of each predicted and never read, then padding") {
  const PackedDataset data(documents({{7, 8, 9, kEnd}, {5, 6, kEnd}, {1, 2, 3, 4, 5, 6, 7, kEnd}}), best_fit(8));
  REQUIRE(data.size() == 2);
  const Row first = row_of(data, 0, 8);
  CHECK(first.tokens == Ids{7, 8, 9, 5, 6, kPaddingToken, kPaddingToken, kPaddingToken});
  CHECK(first.labels == Ids{8, 9, kEnd, 6, kEnd, kIgnore, kIgnore, kIgnore});
  CHECK(first.doc_ids == Ids{0, 0, 0, 1, 1, kPadding, kPadding, kPadding});
  CHECK(row_of(data, 1, 8).labels == Ids{2, 3, 4, 5, 6, 7, kEnd, kIgnore});
  Ids window(9);
  CHECK_THROWS_AS(data.get(0, window), Error);
}

TEST_CASE("packing: what the mask of a chat leaves out is no label, in packed rows and in windows") {
  const auto chats = documents({{7, 8, 9, kEnd}, {5, 6, kEnd}}, {{0, 0, 1, 1}, {0, 1, 0}});
  const Row packed = row_of(PackedDataset(chats, best_fit(6)), 0, 6);
  CHECK(packed.labels == Ids{kIgnore, 9, kEnd, 6, kIgnore, kIgnore});
  const StreamDataset stream(chats, 7, "chats");
  CHECK(row_of(stream, 0, 6).labels == Ids{kIgnore, 9, kEnd, kIgnore, 6, kIgnore});
  CHECK(row_of(stream, 0, 6, false).labels == Ids{kIgnore, 9, kEnd, kIgnore, 6, kIgnore});  // the mask of 5 is 0, too
}

TEST_CASE("packing: windows of documents know their borders without looking at ids, over empty documents, too") {
  const StreamDataset stream(documents({{1, 2, 3}, {}, {4}, {}, {}, {5, 6, 7, 8, 9}}), 9, "documents");
  const Row row = row_of(stream, 0, 8);
  CHECK(row.tokens == Ids{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(row.doc_ids == Ids{0, 0, 0, 1, 2, 2, 2, 2});
  CHECK(row.labels == Ids{2, 3, kIgnore, kIgnore, 6, 7, 8, 9});
}

TEST_CASE("packing: to change one document leaves the logits of the others as they are, to the last bit (H27)") {
  config::Config config = tiny_config();
  config.model.pos_embedding = GENERATE("rope", "learned");
  const auto model = tiny_model(config);
  const PackedDataset data(documents({random_document(11, 1), random_document(9, 2), random_document(8, 3)}), best_fit(32));
  REQUIRE(data.size() == 1);
  const Batch batch = collate(data, Ids{0}, 32, std::nullopt);
  const at::Tensor before = logits_of(*model, batch.tokens, batch.doc_ids);
  REQUIRE(at::isfinite(before).all().item<bool>());  // where there is padding, too
  at::Tensor changed = batch.tokens.clone();
  changed[0][2] = (changed[0][2].item<std::int64_t>() + 1) % kTinyVocab;
  const at::Tensor after = logits_of(*model, changed, batch.doc_ids);
  CHECK_FALSE(before.narrow(1, 0, 10).equal(after.narrow(1, 0, 10)));
  CHECK(before.narrow(1, 10, 22).equal(after.narrow(1, 10, 22)));
}

TEST_CASE("packing: loss and gradient of a packed row are those of its documents alone, weighted by their labels (H27)") {
  config::Config config = tiny_config();
  config.model.pos_embedding = GENERATE("rope", "learned");
  config.optimizer.name = "adamw";
  const auto docs = documents({random_document(11, 1), random_document(9, 2), random_document(8, 3)});
  PackOptions alone = best_fit(32);
  alone.fit = Fit::none;
  const PackedDataset packed(docs, best_fit(32));
  const PackedDataset padded(docs, alone);
  REQUIRE(packed.size() == 1);
  REQUIRE(padded.size() == 3);
  const Learned together = learn(config, packed, {0});
  CHECK(together.counted == 10 + 8 + 7);
  const Learned rows = learn(config, padded, {0, 1, 2});
  CHECK(together.loss == Approx(rows.loss).epsilon(1e-6));
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Learned one = learn(config, padded, {i});
    sum += one.loss * static_cast<double>(one.counted);
  }
  CHECK(together.loss == Approx(sum / 25).epsilon(1e-6));
  for (std::size_t i = 0; i < together.gradients.size(); ++i) {
    CHECK(relative_difference(together.gradients[i], rows.gradients[i]) < 1e-4);  // sums in another order
  }
}

TEST_CASE("packing: a document cut into pieces starts each at position 0 and loses no label (H28)") {
  const PackedDataset data(documents({random_document(51, 4)}), best_fit(32));
  REQUIRE(data.size() == 2);
  const Row first = row_of(data, 0, 32);
  const Row second = row_of(data, 1, 32);
  CHECK(second.tokens[0] == first.labels[31]);
  CHECK(second.doc_ids[17] == 0);
  CHECK(second.doc_ids[18] == kPadding);
  CHECK(32 + 18 == 50);
}

TEST_CASE("packing: token files are documents where they say what ends one; the end of a file ends one, too") {
  const TempDir folder;
  write_token_file(folder / "a.npy", Ids{7, 8, 9, 0, 5, 6, 0, 1, 2}, TokenType::uint16);
  write_token_file(folder / "b.npy", Ids{3, 0}, TokenType::uint16);
  const TokenDocuments docs({folder / "a.npy", folder / "b.npy"}, folder.path(), 0, {});
  REQUIRE(docs.count() == 4);
  CHECK(docs.start(1) == 4);
  CHECK(docs.start(2) == 7);
  CHECK(docs.start(3) == 9);
  CHECK(docs.tokens() == 11);
  Ids across(4);
  docs.read(7, across);
  CHECK(across == Ids{1, 2, 3, 0});
  CHECK_THROWS_WITH(docs.read(8, across), Contains("the files have 11"));

  config::Config config;
  config.model.vocab_size = 512;
  config.train.seq_len = 8;
  config.train.batch_size = 1;
  config.data.dataset_path = folder.path().string();
  config.data.pack_method = "best_fit";
  CHECK_THROWS_WITH(make_train_loader(config, {}), Contains("data.pack_method = \"best_fit\" needs data.eos_id"));
  config.data.eos_id = 0;
  const auto loader = make_train_loader(config, {});
  CHECK(loader->batch(0).counted == 3 + 2 + 1 + 1);
  CHECK(loader->batch(0).doc_ids.defined());
  CHECK_THAT(loader->describe(), Contains("packed: 1 sequences, 87.5 % full"));
  config.data.pack_method = "pad";
  CHECK(make_train_loader(config, {})->batches_per_epoch() == 4);
}
