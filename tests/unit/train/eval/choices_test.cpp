// Multiple choice against lm-evaluation-harness and transformers: data/make_choices.py made the model and the numbers.

#include <nlohmann/json.hpp>

#include <tuple>

#include "builtins/builtins.h"
#include "checkpoint/reader.h"
#include "config/load/load.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/log.h"
#include "model/transformer/build.h"
#include "support/temp_dir.h"
#include "support/tiny.h"
#include "train/eval/choices.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

const fs::path kFolder = fs::path(KF_SOURCE_DIR) / "tests/unit/train/eval/data";

std::shared_ptr<Model> load_model(const Registries& registries) {
  config::Request request;
  request.overrides = {"--model.preset=" + (kFolder / "choices_model").string(), "--train.seq_len=8"};
  const config::Config config = config::load_or_fail(request, registries.catalog()).config;
  std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 0);
  load_weights(kFolder / "choices_model", *model);
  return model;
}

}  // namespace

TEST_CASE("choices: log-likelihoods, acc and acc_norm are those of lm-evaluation-harness") {
  const Registries registries = native_registries();
  const auto model = load_model(registries);
  const std::vector<ChoiceItem> items = parse_choices(read_file(kFolder / "choices.jsonl"), "choices.jsonl");
  const nlohmann::json expected = nlohmann::json::parse(read_file(kFolder / "choices_expected.json"));
  ChoiceOptions options;
  options.max_positions = 48;
  options.batch_size = GENERATE(1, 3, 100);
  const std::size_t warned = log::count(log::Level::warn);
  const std::vector<ChoiceScores> scores = score_choices(*model, ByteTokenizer(), items, "choices.jsonl", options);
  CHECK(log::count(log::Level::warn) == warned + 1);  // of the contexts that were cut
  REQUIRE(scores.size() == items.size());
  std::vector<bool> right;
  std::vector<bool> right_by_characters;
  for (std::size_t i = 0; i < items.size(); ++i) {
    CAPTURE(i);
    const auto wanted = expected["loglikelihoods"][i].get<std::vector<double>>();
    REQUIRE(scores[i].loglikelihoods.size() == wanted.size());
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      CHECK(scores[i].loglikelihoods[c] == Approx(wanted[c]).epsilon(1e-5));
    }
    right.push_back(scores[i].best == items[i].answer);
    right_by_characters.push_back(scores[i].best_by_characters == items[i].answer);
  }
  CHECK(accuracy_of(right).value == Approx(expected["acc"].get<double>()));
  CHECK(accuracy_of(right_by_characters).value == Approx(expected["acc_norm"].get<double>()));
}

TEST_CASE("choices: an answer that cannot be scored is named with its line") {
  const Registries registries = native_registries();
  const auto model = load_model(registries);
  ChoiceOptions options;
  options.max_positions = 4;
  const std::vector<ChoiceItem> items{{"context", {"no", "far too long"}, 0, 7}};
  CHECK_THROWS_WITH(score_choices(*model, ByteTokenizer(), items, "f.jsonl", options),
                    Contains("f.jsonl:7, choice 1") && Contains("13 tokens"));
}

TEST_CASE("choices: the standard error is that of a mean of ones and zeros") {
  CHECK(accuracy_of({true, true, false, false}).value == 0.5);
  CHECK(accuracy_of({true, true, false, false}).error.value() == Approx(std::sqrt(0.25 / 3)));
  CHECK_FALSE(accuracy_of({true}).error.has_value());  // "N/A" there
}

TEST_CASE("choices: what a tokenizer's file puts before a text stands before a context once, as in lm-evaluation-harness 0.4.13") {
  const Registries registries = native_registries();
  const auto model = load_model(registries);
  const TempDir folder;
  // byte_tokenizer.json with the template "<eos> $A", which begins a text with its own end, as GPT-2's kind of models do.
  nlohmann::json file = nlohmann::json::parse(read_file(kFolder / "byte_tokenizer.json"));
  file["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<eos>": {"id": "<eos>", "ids": [256], "tokens": ["<eos>"]}}})");
  folder.write("tokenizer.json", file.dump());
  folder.write("tokenizer_config.json", R"({"bos_token": "<eos>", "eos_token": "<eos>"})");
  const auto tokenizer = open_tokenizer(folder.path().string(), kByteVocab);
  ChoiceOptions options;
  options.max_positions = 48;
  options.delimiter = "";
  options.style.as_its_file_says = true;
  // HFLM.loglikelihood over the same model and tokenizer.
  const std::vector<std::tuple<std::string, std::string, double>> cases{
      {"The sky is", " blue", -33.12346267700195},
      {"<eos>The sky is", " blue", -33.12346267700195},
      {"", " yes", -26.65870475769043},
      {"", "<eos>yes", -19.88106346130371},
      {"a<eos>b", " c", -10.813166618347168},
      {"wide\u3000", " x", -29.210830688476562},
      {"nbsp\u00a0\n", " y", -31.543621063232422},
      {"This context is far too long for the forty-eight positions that it takes", " so it is cut", -82.00994873046875},
  };
  std::vector<ChoiceItem> items;
  for (const auto& [context, choice, wanted] : cases) {
    items.push_back({context, {choice, "other"}, 0, static_cast<std::int64_t>(items.size()) + 1});
  }
  const std::vector<ChoiceScores> scores = score_choices(*model, *tokenizer, items, "cases", options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    CHECK(scores[i].loglikelihoods[0] == Approx(std::get<2>(cases[i])).epsilon(1e-5));
  }
}

TEST_CASE("choices: of a model whose numbers depend on the length each question has the scores that it has alone") {
  config::Config config = tiny_config();
  config.model.vocab_size = kByteVocab;
  config.model.rope_scaling = GENERATE("longrope", "dynamic");
  config.model.rope_factor = 4;
  config.model.rope_orig_len = 16;
  config.model.rope_short_factors = {1, 1.1, 1.2, 1.5};
  config.model.rope_long_factors = {1, 2, 8, 30};
  const auto model = tiny_model(config);
  const ChoiceItem few{"ab", {"c", "de"}, 0, 1}, many{std::string(30, 'x'), {"y", "longer than any other"}, 0, 2};
  const auto alone = score_choices(*model, ByteTokenizer(), {few}, "few", {});
  const auto both = score_choices(*model, ByteTokenizer(), {few, many}, "both", {});
  for (std::size_t c = 0; c < 2; ++c) {
    CHECK(both[0].loglikelihoods[c] == Approx(alone[0].loglikelihoods[c]).margin(1e-5));
  }
}

TEST_CASE("choices: acc_norm divides by characters, acc_bytes by the bytes of their UTF-8") {
  const Registries registries = native_registries();
  const auto model = load_model(registries);
  const std::vector<ChoiceItem> items{{"Grüße aus", {"Köln", "ab\u3000\U0001F600"}, 0, 1}};
  const ChoiceScores scores = score_choices(*model, ByteTokenizer(), items, "cases", {}).front();
  CHECK(scores.characters == std::vector<std::int64_t>{4, 4});
  CHECK(scores.bytes == std::vector<std::int64_t>{5, 9});
  const auto best = [&](const std::vector<std::int64_t>& by) {
    return scores.loglikelihoods[0] / static_cast<double>(by[0]) >= scores.loglikelihoods[1] / static_cast<double>(by[1]) ? 0 : 1;
  };
  CHECK(scores.best_by_characters == best(scores.characters));
  CHECK(scores.best_by_bytes == best(scores.bytes));
}
