#include "data/tokenizer/train.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"
#include "support/temp_dir.h"

namespace kf {
namespace {

using Catch::Matchers::Contains;

std::string some_text() {
  std::string out;
  for (int i = 0; i < 400; ++i) {
    out += "The cat number " + std::to_string(i % 37) + " sat on the mat, and the other cats sat with it.\n  It's fine: naïve cafés.\n";
  }
  return out;
}

TrainedBpe train(const std::vector<std::string>& texts, const BpeTraining& options) {
  std::size_t at = 0;
  const NextText next = [&](std::string_view& text) {
    text = at < texts.size() ? std::string_view(texts[at]) : std::string_view();
    return at++ < texts.size();
  };
  return train_bpe(next, "a.txt", options);
}

TEST_CASE("tokenizer: a trained vocabulary is the same for any number of threads, and encodes what it learned from") {
  const test::TempDir folder;
  std::string text;
  for (int i = 0; i < 120; ++i) {
    text += some_text();  // more than one part
  }
  BpeTraining options;
  options.vocab_size = 330;
  options.threads = 1;
  const TrainedBpe one = train({text}, options);
  options.threads = 3;
  const TrainedBpe three = train({text}, options);
  CHECK(one.tokens == three.tokens);
  CHECK(one.merges == three.merges);
  CHECK(one.tokens.size() == 330);
  CHECK(one.bytes == static_cast<std::int64_t>(text.size()));

  const fs::path json = folder.write("tokenizer.json", tokenizer_json(one, options));
  const auto tokenizer = open_tokenizer(json.string());
  CHECK(tokenizer->vocab_size() == 330);
  CHECK(tokenizer->eos_id() == 0);
  const std::vector<std::int64_t> ids = tokenizer->encode(text);
  CHECK(ids.size() < text.size() / 2);
  CHECK(tokenizer->decode(ids) == text);
}

TEST_CASE("tokenizer: the first merges are the pairs seen most often, ties going to smaller ids") {
  const std::string text = "aaab aaab xy xy xy";  // " xy" three times: "xy" before "aa"
  BpeTraining options;
  options.vocab_size = 259;
  options.special = {};
  options.pattern = scan::Pattern::gpt2;
  options.min_count = 1;
  const TrainedBpe trained = train({text}, options);
  CHECK(trained.tokens[256] == "aa");  // in "aaab" it is there twice, so four times
  CHECK(trained.tokens[257] == "xy");
}

TEST_CASE("tokenizer: training says when the text is too small or missing") {
  BpeTraining options;
  options.vocab_size = 400;
  CHECK_THROWS_WITH(train({""}, options), Contains("no text"));
  CHECK_THROWS_WITH(train({"abc", "abc"}, options), Contains("too small for 400 ids") && Contains("--min-count"));
  CHECK_THROWS_AS(train({}, options), Error);
}

}  // namespace
}  // namespace kf
