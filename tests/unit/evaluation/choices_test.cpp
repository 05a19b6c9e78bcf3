// Multiple choice against lm-evaluation-harness and transformers: data/make_choices.py made the model and the numbers.

#include <nlohmann/json.hpp>

#include "checkpoint/manager.h"
#include "config/load.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/log.h"
#include "model/build.h"
#include "support/tiny.h"
#include "train/choices.h"

#include <catch2/catch.hpp>  // last: CHECK is a macro of torch, too

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

const fs::path kFolder = fs::path(KF_SOURCE_DIR) / "tests/unit/evaluation/data";

std::shared_ptr<Model> load_model(const Registries& registries) {
  config::Request request;
  request.overrides = {"--model.preset=" + (kFolder / "choices_model").string(), "--train.seq_len=8"};
  const config::Config config = config::load_or_fail(request, registries.catalog()).config;
  std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 0);
  CheckpointManager::load_weights(kFolder / "choices_model", *model);
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
  std::vector<bool> right_by_bytes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    CAPTURE(i);
    const auto wanted = expected["loglikelihoods"][i].get<std::vector<double>>();
    REQUIRE(scores[i].loglikelihoods.size() == wanted.size());
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      CHECK(scores[i].loglikelihoods[c] == Approx(wanted[c]).epsilon(1e-5));
    }
    right.push_back(scores[i].best == items[i].answer);
    right_by_bytes.push_back(scores[i].best_by_bytes == items[i].answer);
  }
  CHECK(accuracy_of(right).value == Approx(expected["acc"].get<double>()));
  CHECK(accuracy_of(right_by_bytes).value == Approx(expected["acc_norm"].get<double>()));
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
  CHECK(accuracy_of({true, true, false, false}).error == Approx(std::sqrt(0.25 / 3)));
  CHECK(accuracy_of({true}).error == 0);
}
