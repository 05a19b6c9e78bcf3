#include <ATen/ATen.h>

#include "core/error.h"
#include "core/log.h"
#include "support/tiny.h"
#include "train/generate.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Contains;

namespace {

using Ids = std::vector<std::int64_t>;

/// A model without a cache around one that has it: how parts that keep nothing are run.
class Forgetful final : public Model {
 public:
  explicit Forgetful(std::shared_ptr<Model> inner) : inner_(add_child("inner", std::move(inner))) {}
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override { return inner_->forward(tokens, context); }
  KvCache make_cache(std::int64_t, std::int64_t) override { fail(Code::config, "no cache"); }
  bool has_cache() const override { return false; }

 private:
  std::shared_ptr<Model> inner_;
};

GenerateOptions greedy(std::int64_t count) {
  GenerateOptions options;
  options.temperature = 0;
  options.max_new_tokens = count;
  return options;
}

config::Config byte_config() {
  config::Config config = tiny_config();
  config.model.vocab_size = kByteVocab;
  return config;
}

GenerateRequest request_of(std::vector<Ids> prompts, const GenerateOptions& options, const Tokenizer* tokenizer = nullptr) {
  GenerateRequest request;
  request.prompts = std::move(prompts);
  request.options = options;
  request.tokenizer = tokenizer;
  return request;
}

const std::vector<Ids> kPrompts{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11}, {12, 13}};

}  // namespace

TEST_CASE("generate: leaves the model's mode as it was, also after an error") {
  const auto model = tiny_model(tiny_config());
  model->train(true);
  GenerateOptions options;
  options.max_new_tokens = 5;
  CHECK(generate_ids(*model, {1, 2, 3}, options, std::nullopt, at::kCPU).size() == 5);
  CHECK(model->training());
  options.max_new_tokens = 5000;
  CHECK_THROWS_AS(generate_ids(*model, {1, 2, 3}, options, std::nullopt, at::kCPU), Error);
  CHECK(model->training());
  options.max_new_tokens = 0;
  CHECK(generate_ids(*model, {1}, options, std::nullopt, at::kCPU).empty());
}

TEST_CASE("generate: the cache gives the ids and log-probabilities of the whole text each time") {
  config::Config config = tiny_config();
  const std::string kind = GENERATE("gqa", "experts", "look-ahead");
  CAPTURE(kind);
  if (kind == "experts") {
    config.model.num_experts = 4;
    config.model.moe_top_k = 2;
  } else if (kind == "look-ahead") {
    config.model.mtp_layers = 1;
  }
  const auto model = tiny_model(config);
  Forgetful slow(model);
  const std::size_t logged = log::count(log::Level::info);
  const Completion a = generate(*model, request_of({{1, 2, 3}}, greedy(12))).front();
  CHECK(log::count(log::Level::info) == logged);
  const Completion b = generate(slow, request_of({{1, 2, 3}}, greedy(12))).front();
  CHECK(log::count(log::Level::info) == logged + 1);  // that it takes the slow path
  CHECK(a.ids == b.ids);
  for (std::size_t i = 0; i < a.ids.size(); ++i) {
    CHECK(a.logprobs[i] == Approx(b.logprobs[i]).margin(1e-5));
  }
}

TEST_CASE("generate: a batch of prompts of any length gives what each prompt gives alone") {
  const auto model = tiny_model(tiny_config());
  GenerateOptions options = greedy(8);
  SECTION("greedy") {}
  SECTION("drawn: prompt i draws from seed + i") {
    options.temperature = 1;
    options.top_p = 0.9;
    options.repetition_penalty = 1.2;
    options.seed = 5;
  }
  GenerateRequest request = request_of(kPrompts, options);
  request.batch_size = GENERATE(1, 2, 16);
  const std::vector<Completion> together = generate(*model, request);
  REQUIRE(together.size() == kPrompts.size());
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    CAPTURE(i);
    GenerateOptions own = options;
    own.seed += i;
    const Completion alone = generate(*model, request_of({kPrompts[i]}, own)).front();
    CHECK(together[i].ids == alone.ids);
    CHECK(together[i].prompt_tokens == static_cast<std::int64_t>(kPrompts[i].size()));
    for (std::size_t t = 0; t < alone.ids.size(); ++t) {
      CHECK(together[i].logprobs[t] == Approx(alone.logprobs[t]).margin(1e-5));  // another order of additions behind padding
    }
  }
}

TEST_CASE("generate: experts with a capacity, where rows compete, run one prompt at a time") {
  config::Config config = tiny_config();
  config.model.num_experts = 4;
  config.model.moe_top_k = 2;
  config.model.moe_capacity_factor = 1.0;
  const auto model = tiny_model(config);
  CHECK_FALSE(model->takes_padding());
  const std::vector<Completion> together = generate(*model, request_of(kPrompts, greedy(6)));
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    const Completion alone = generate(*model, request_of({kPrompts[i]}, greedy(6))).front();
    CHECK(together[i].ids == alone.ids);
    CHECK(together[i].logprobs == alone.logprobs);
  }
}

TEST_CASE("generate: log-probabilities are the model's own, whatever the temperature and the cuts") {
  const auto model = tiny_model(tiny_config());
  GenerateOptions options;
  options.max_new_tokens = 6;
  options.temperature = 3;
  options.top_k = 20;
  options.repetition_penalty = 2;
  const Completion answer = generate(*model, request_of({{1, 2, 3}}, options)).front();
  Ids text{1, 2, 3};
  for (std::size_t i = 0; i < answer.ids.size(); ++i) {
    const at::Tensor logits = logits_of(*model, at::tensor(text, at::kLong).unsqueeze(0))[0][-1];
    CHECK(answer.logprobs[i] == Approx(logits.log_softmax(-1)[answer.ids[i]].item<double>()).margin(1e-5));
    text.push_back(answer.ids[i]);
  }
}

TEST_CASE("generate: the end of a document and stop texts end an answer, and say so") {
  const auto model = tiny_model(byte_config());
  const ByteTokenizer bytes;
  const Completion whole = generate(*model, request_of({{'a', 'b'}}, greedy(10), &bytes)).front();
  REQUIRE(whole.ids.size() == 10);
  CHECK(whole.end == Completion::End::length);
  CHECK(whole.text == bytes.decode(whole.ids));

  GenerateRequest request = request_of({{'a', 'b'}}, greedy(10), &bytes);
  const std::size_t place = 4;
  request.options.stop = {whole.text.substr(place, 2)};
  const std::size_t first = whole.text.find(request.options.stop[0]);  // it may occur earlier
  std::string streamed;
  request.on_text = [&](std::size_t, const std::string& text) { streamed += text; };
  const Completion stopped = generate(*model, request).front();
  CHECK(stopped.end == Completion::End::stop);
  CHECK(stopped.text == whole.text.substr(0, first));
  CHECK(streamed == stopped.text);
  CHECK(stopped.ids.size() == first + 2);

  request = request_of({{'a', 'b'}}, greedy(10), &bytes);
  request.eos = whole.ids[3];
  const Completion ended = generate(*model, request).front();
  CHECK(ended.end == Completion::End::eos);
  CHECK(std::find(ended.ids.begin(), ended.ids.end(), *request.eos) == ended.ids.end());
}

TEST_CASE("generate: what does not fit is an error that says what would, or a shorter answer where the length was only a default") {
  const auto model = tiny_model(tiny_config());
  GenerateRequest request = request_of({{1, 2, 3}, {1}}, greedy(10));
  request.max_positions = 12;
  CHECK_THROWS_WITH(generate(*model, request), Contains("max_new_tokens (10)") && Contains("prompt 1") && Contains("at most 9 fit"));
  request.options.shorten = true;
  const std::vector<Completion> answers = generate(*model, request);
  CHECK(answers[0].ids.size() == 9);
  CHECK(answers[1].ids.size() == 10);
  request.prompts = {Ids(12, 1)};
  CHECK_THROWS_WITH(generate(*model, request), Contains("the prompt has 12 tokens") && Contains("no room"));
  request.prompts = {{}};
  CHECK_THROWS_WITH(generate(*model, request), Contains("is empty"));
  request.prompts = {{1}};
  request.options.stop = {"x"};
  CHECK_THROWS_WITH(generate(*model, request), Contains("stop texts need a tokenizer"));
}
