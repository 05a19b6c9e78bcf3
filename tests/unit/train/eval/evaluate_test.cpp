#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "core/error.h"
#include "data/loader/eval_sets.h"
#include "metrics/eval_table.h"
#include "support/temp_dir.h"
#include "support/tiny.h"
#include "train/eval/evaluate.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

config::Config byte_job(const TempDir& folder) {
  config::Config config = tiny_config();
  config.model.vocab_size = kByteVocab;
  config.train.seq_len = 8;
  config.eval.enabled = true;
  config.eval.steps = -1;
  std::string text;
  for (int i = 0; i < 61; ++i) {  // with its end and the second document 66 ids: eight windows of 8 labels, and one of 1
    text += static_cast<char>('a' + i * 7 % 26);
  }
  config.eval.dataset_path = folder.write("a.jsonl", "{\"text\": \"" + text + "\"}\n{\"text\": \"xyz\"}\n").string();
  return config;
}

}  // namespace

TEST_CASE("evaluation: sums of ranks give the numbers of one rank, also with short and empty shares (H44)") {
  const TempDir folder;
  config::Config config = byte_job(folder);
  config.eval.batch_size = 2;
  const auto model = tiny_model(config);
  const ByteTokenizer bytes;
  const auto sums_of = [&](std::int64_t world) {
    EvalSums sums;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      sums += evaluate_sums(*model, *make_eval_sets(config, {rank, world})[0].data, {at::kCPU, false, &bytes});
    }
    return sums;
  };
  const EvalSums one = sums_of(1);
  CHECK(one.sequences == 9);
  CHECK(one.tokens == 8 * 8 + 1);
  CHECK(one.bytes == one.tokens - 2);  // the documents' ends are no bytes
  for (const std::int64_t world : {2, 3, 8}) {
    CAPTURE(world);
    const EvalSums many = sums_of(world);
    CHECK(many.sequences == one.sequences);
    CHECK(many.tokens == one.tokens);
    CHECK(many.bytes == one.bytes);
    CHECK(many.hits == one.hits);
    CHECK(many.loss == Approx(one.loss).epsilon(1e-6));
    CHECK(many.result(0, "").loss == Approx(one.result(0, "").loss).epsilon(1e-6));
  }
}

TEST_CASE("evaluation: every number is its formula over the logits") {
  const TempDir folder;
  config::Config config = byte_job(folder);
  Bench bench(config);
  const auto data = std::move(make_eval_sets(config, {})[0].data);
  double loss = 0;
  std::int64_t hits = 0;
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < data->batches_per_epoch(); ++i) {
    const Batch batch = data->batch(i);
    const at::Tensor logits = logits_of(*bench.model, batch.tokens, batch.doc_ids).to(at::kDouble);
    const at::Tensor counts = batch.labels.ne(kIgnore);
    const at::Tensor found = logits.log_softmax(-1).gather(2, batch.labels.clamp_min(0).unsqueeze(2)).squeeze(2);
    loss -= found.masked_select(counts).sum().item<double>();
    hits += logits.argmax(-1).eq(batch.labels).sum().item<std::int64_t>();
    bytes += batch.labels.lt(256).logical_and(counts).sum().item<std::int64_t>();
    tokens += counts.sum().item<std::int64_t>();
  }
  const ByteTokenizer tokenizer;
  const bool in_chunks = GENERATE(false, true);
  CAPTURE(in_chunks);
  const EvalResult eval = evaluate(*bench.model, *bench.optimizer, *data, {at::kCPU, in_chunks, &tokenizer}, 12);
  CHECK(eval.step == 12);
  CHECK(eval.tokens == tokens);
  CHECK(eval.loss == Approx(loss / static_cast<double>(tokens)).epsilon(1e-6));
  CHECK(eval.perplexity == Approx(std::exp(loss / static_cast<double>(tokens))).epsilon(1e-5));
  CHECK(*eval.accuracy == static_cast<double>(hits) / static_cast<double>(tokens));
  CHECK(*eval.bits_per_byte == Approx(loss / std::log(2.0) / static_cast<double>(bytes)).epsilon(1e-6));
  CHECK_FALSE(evaluate(*bench.model, *bench.optimizer, *data, {}, 12).bits_per_byte);
}

TEST_CASE("evaluation: a set without labels has no loss, one without sequences is an error that says which") {
  Bench bench(tiny_config());
  FixedLoader masked({make_batch(random_tokens(2, 4, 1), at::full({2, 4}, kIgnore, at::kLong))});
  const EvalResult nothing = evaluate(*bench.model, *bench.optimizer, masked, {}, 0);
  CHECK_FALSE(nothing.has_loss());
  CHECK(to_numbers(nothing).find("loss")->is_null());
  CHECK_FALSE(find_number(nothing, "loss"));
  CHECK_FALSE(from_numbers(to_numbers(nothing), 0).has_loss());
  FixedLoader none({make_batch(at::empty({0, 4}, at::kLong), at::empty({0, 4}, at::kLong))});
  CHECK_THROWS_WITH(evaluate(*bench.model, *bench.optimizer, none, {}, 0), Contains("no sequence"));
  // A rank without labels adds nothing (H6).
  EvalSums sums = evaluate_sums(*bench.model, masked, {});
  FixedLoader some(random_tokens(2, 4, 1), random_tokens(2, 4, 2), 2);
  const EvalSums alone = evaluate_sums(*bench.model, some, {});
  sums += alone;
  CHECK(sums.result(0, "").loss == alone.result(0, "").loss);
}

TEST_CASE("evaluation: together, sets count alike, and those with a longer interval stand aside") {
  const auto set = [](const char* name, double loss, std::int64_t tokens, std::optional<double> bits) {
    return EvalResult{.step = 3,
                      .loss = loss,
                      .perplexity = std::exp(loss),
                      .tokens = tokens,
                      .bits_per_byte = bits,
                      .accuracy = loss / 10,
                      .name = name};
  };
  const EvalResult eval = join({set("a", 1, 10, 2.0), set("b", 3, 1000, 4.0), set("rare", 100, 1, std::nullopt)}, {true, true, false});
  CHECK(eval.loss == 2);
  CHECK(eval.perplexity == Approx(std::exp(2)));
  CHECK(*eval.bits_per_byte == 3);
  CHECK(*eval.accuracy == Approx(0.2));
  CHECK(eval.tokens == 1010);
  CHECK(eval.sets.size() == 3);
  CHECK_FALSE(eval.ema);
  CHECK(find_number(eval, "loss") == 2);
  CHECK(find_number(eval, "rare.loss") == 100);
  CHECK_FALSE(find_number(eval, "rare.bits_per_byte"));
  CHECK_FALSE(find_number(eval, "c.loss"));
  const EvalResult some = join({set("a", 1, 10, 2.0), set("empty", std::nan(""), 0, std::nullopt)}, {true, true});
  CHECK(some.loss == 1);  // of the sets that have labels
  CHECK(*some.bits_per_byte == 2);
  CHECK_FALSE(find_number(some, "empty.loss"));
  CHECK_FALSE(join({set("empty", std::nan(""), 0, std::nullopt)}, {true}).has_loss());
}

TEST_CASE("evaluation: the table of metrics and checkpoints reads back") {
  EvalResult eval{.step = 7, .loss = 2.5, .perplexity = 12.2, .tokens = 9, .ema = 2.25, .bits_per_byte = 3.5, .accuracy = 0.25};
  eval.sets = {{.step = 7, .loss = std::nan(""), .perplexity = 4, .tokens = 5, .name = "web/en"}};
  const EvalResult back = from_numbers(to_numbers(eval), 7);
  CHECK(back.step == 7);
  CHECK(back.loss == 2.5);
  CHECK(back.ema == 2.25);
  CHECK(back.bits_per_byte == 3.5);
  CHECK(back.accuracy == 0.25);
  REQUIRE(back.sets.size() == 1);
  CHECK(back.sets[0].name == "web/en");
  CHECK(std::isnan(back.sets[0].loss));
  CHECK(back.sets[0].tokens == 5);
}

TEST_CASE("evaluation: the acceptance rate is how often a layer of multi-token prediction guesses the model's own likeliest token") {
  config::Config config = tiny_config();
  config.model.mtp_layers = 2;
  Bench bench(config);
  const std::int64_t depth = GENERATE(1, 2);
  const at::Tensor tokens = random_tokens(3, 12, 4);
  at::Tensor labels = random_tokens(3, 12, 5);
  labels[1].narrow(0, 6, 6).fill_(kIgnore);
  FixedLoader data(tokens, labels, 3);
  const at::NoGradGuard no_grad;
  bench.model->train(false);
  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  context.looks_ahead = true;
  const at::Tensor own = bench.model->forward(tokens, context).argmax(-1);
  const at::Tensor guess = bench.model->project(results.ahead[static_cast<std::size_t>(depth) - 1]).argmax(-1);
  std::int64_t count = 0, same = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t t = 0; t + depth < 12; ++t) {
      if (labels[row][t + depth].item<std::int64_t>() != kIgnore) {
        ++count;
        same += own[row][t + depth].item<std::int64_t>() == guess[row][t].item<std::int64_t>() ? 1 : 0;
      }
    }
  }
  const bool in_chunks = GENERATE(false, true);
  EvalOptions options{at::kCPU, in_chunks};
  options.mtp_head = depth;
  const EvalSums sums = evaluate_sums(*bench.model, data, options);
  CHECK(sums.ahead == count);
  CHECK(sums.accepted == same);
  CHECK(sums.result(0, "").mtp_acceptance.value() == static_cast<double>(same) / static_cast<double>(count));
  CHECK_FALSE(evaluate_sums(*bench.model, data, {}).result(0, "").mtp_acceptance.has_value());
  options.mtp_head = 3;
  CHECK_THROWS_WITH(evaluate_sums(*bench.model, data, options), Contains("eval.mtp_head (3)"));
}

TEST_CASE("evaluation: a model of lengths has a short text's numbers at any width of its row") {
  config::Config config = tiny_config();
  config.model.rope_scaling = GENERATE("longrope", "dynamic");
  config.model.rope_factor = 4;
  config.model.rope_orig_len = 8;
  config.model.rope_short_factors = {1, 1.1, 1.2, 1.5};
  config.model.rope_long_factors = {1, 2, 8, 30};
  const auto model = tiny_model(config);
  const at::Tensor text = random_tokens(1, 6, 3);
  const at::Tensor alone = logits_of(*model, text);
  const at::Tensor beside = random_tokens(1, 18, 4);
  const at::Tensor padded = at::cat({at::cat({text, at::zeros({1, 12}, at::kLong)}, 1), beside});
  const at::Tensor docs =
      at::cat({at::cat({at::zeros({1, 6}, at::kLong), at::full({1, 12}, kPadding, at::kLong)}, 1), at::zeros({1, 18}, at::kLong)});
  const at::Tensor rows = logits_of(*model, padded, docs);
  CHECK(at::allclose(rows.narrow(0, 0, 1).narrow(1, 0, 6), alone, 1e-4, 2e-5));
  CHECK(at::allclose(rows.narrow(0, 1, 1), logits_of(*model, beside), 1e-4, 2e-5));
  const at::Tensor both =
      logits_of(*model, at::cat({text, beside}, 1), at::cat({at::zeros({1, 6}, at::kLong), at::ones({1, 18}, at::kLong)}, 1));
  CHECK(at::allclose(both.narrow(1, 0, 6), alone, 1e-4, 2e-5));
  CHECK(at::allclose(both.narrow(1, 6, 18), logits_of(*model, beside), 1e-4, 2e-5));
  ForwardContext context;
  context.lengths = at::tensor({6, 18}, at::kLong);
  const at::NoGradGuard no_grad;
  const at::Tensor ragged = model->forward(padded, context);
  CHECK(at::allclose(ragged.narrow(0, 0, 1).narrow(1, 0, 6), alone, 1e-4, 2e-5));
  CHECK_FALSE(at::allclose(logits_of(*model, padded).narrow(0, 0, 1).narrow(1, 0, 6), alone, 1e-4, 2e-5));
}
