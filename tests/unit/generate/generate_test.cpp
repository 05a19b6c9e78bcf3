#include <ATen/ATen.h>

#include <functional>

#include "core/error.h"
#include "core/log.h"
#include "generate/generate.h"
#include "support/tiny.h"

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
  request.ends = {whole.ids[3]};
  const Completion ended = generate(*model, request).front();
  CHECK(ended.end == Completion::End::eos);
  CHECK(std::find(ended.ids.begin(), ended.ids.end(), request.ends.front()) == ended.ids.end());
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

namespace {

using Change = std::function<void(config::ModelConfig&)>;
struct Kind {
  const char* name;
  Change change;
};

void stretch(config::ModelConfig& m, const char* kind) {
  m.rope_scaling = kind;
  m.rope_factor = 4;
  m.rope_orig_len = 8;
  m.rope_theta = 100;
  if (std::string(kind) == "longrope") {
    const std::size_t pairs = m.attention == "mla" ? 2 : 4;
    m.rope_short_factors = {1, 1.1, 1.2, 1.5};
    m.rope_long_factors = {1, 2, 8, 30};
    m.rope_short_factors.resize(pairs);
    m.rope_long_factors.resize(pairs);
  }
}

void make_latent(config::ModelConfig& m) {
  m.attention = "mla";
  m.n_kv_heads.reset();
  m.mla_kv_rank = 12;
  m.mla_nope_dim = 6;
  m.mla_rope_dim = 4;
  m.mla_v_dim = 10;
}

/// What may make a token's numbers depend on where it stands, on how long the text is, or on who stands beside it.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"longrope", [](auto& m) { stretch(m, "longrope"); }},
      {"dynamic", [](auto& m) { stretch(m, "dynamic"); }},
      {"linear", [](auto& m) { stretch(m, "linear"); }},
      {"llama3", [](auto& m) { stretch(m, "llama3"); }},
      {"yarn", [](auto& m) { stretch(m, "yarn"); }},
      {"longrope, half of a head",
       [](auto& m) {
         stretch(m, "longrope");
         m.rope_fraction = 0.5;
         m.rope_short_factors.resize(2);
         m.rope_long_factors.resize(2);
       }},
      {"dynamic, proportional", [](auto& m) { stretch(m, "dynamic"), m.rope_fraction = 0.5, m.rope_partial = "proportional"; }},
      {"dynamic, interleaved", [](auto& m) { stretch(m, "dynamic"), m.rope_layout = "interleaved"; }},
      {"longrope, late norms",
       [](auto& m) { stretch(m, "longrope"), m.qk_norm = true, m.qk_norm_late = true, m.qk_norm_type = "layernorm"; }},
      {"dynamic, local layers with a base of their own",
       [](auto& m) {
         stretch(m, "dynamic"), m.layer_pattern = {"local", "global"}, m.window = 3, m.rope_theta_local = 50;
       }},
      {"longrope, every second layer without rotation, tempered",
       [](auto& m) { stretch(m, "longrope"), m.nope_every = 2, m.attn_temp_tuning = true, m.attn_temp_floor = 3; }},
      {"longrope, chunks",
       [](auto& m) {
         stretch(m, "longrope"), m.layer_pattern = {"chunk", "global"}, m.chunk = 4;
       }},
      {"mla", make_latent},
      {"mla, longrope", [](auto& m) { make_latent(m), stretch(m, "longrope"); }},
      {"mla, dynamic", [](auto& m) { make_latent(m), stretch(m, "dynamic"); }},
      {"learned", [](auto& m) { m.pos_embedding = "learned"; }},
      {"sinusoidal", [](auto& m) { m.pos_embedding = "sinusoidal"; }},
      {"alibi", [](auto& m) { m.pos_embedding = "alibi"; }},
      {"no positions, tempered", [](auto& m) { m.pos_embedding = "none", m.attn_temp_tuning = true, m.attn_temp_floor = 3; }},
      {"tempered everywhere", [](auto& m) { m.attn_temp_tuning = true, m.attn_temp_layers = "all", m.attn_temp_floor = 3; }},
      {"local, sinks", [](auto& m) { m.layer_pattern = {"local"}, m.window = 3, m.attn_sink = true; }},
      {"chunks",
       [](auto& m) {
         m.layer_pattern = {"chunk", "global"}, m.chunk = 4;
       }},
      {"softcap", [](auto& m) { m.attn_softcap = 0.2, m.final_logit_softcap = 0.5; }},
      {"experts", [](auto& m) { m.num_experts = 4, m.moe_top_k = 2; }},
      {"experts, longrope", [](auto& m) { m.num_experts = 4, m.moe_top_k = 2, stretch(m, "longrope"); }},
      {"look-ahead, longrope", [](auto& m) { m.mtp_layers = 1, stretch(m, "longrope"); }},
  };
  return all;
}

void check_equal(const Completion& a, const Completion& b) {
  CHECK(a.ids == b.ids);
  REQUIRE(a.logprobs.size() == b.logprobs.size());
  for (std::size_t t = 0; t < a.logprobs.size(); ++t) {
    CHECK(a.logprobs[t] == Approx(b.logprobs[t]).margin(1e-5));  // another order of additions: some 1e-6 in fp32
  }
}

}  // namespace

TEST_CASE("generate: every kind of position has the numbers of a forward over the whole text at every step, alone and beside others") {
  // Alone the first prompt begins below rope_orig_len and passes it, the last begins beyond it; together they pass it one after the other.
  const std::vector<Ids> prompts{{4}, {1, 2, 3}, {5, 6, 7, 8, 9, 10, 11}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21}};
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    config::Config config = tiny_config();
    config.model.rope_theta = 100;
    kind.change(config.model);
    const auto model = tiny_model(config);
    REQUIRE(model->has_cache());
    Forgetful whole(model);
    const std::vector<Completion> together = generate(*model, request_of(prompts, greedy(12)));
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      CAPTURE(i);
      const Completion truth = generate(whole, request_of({prompts[i]}, greedy(12))).front();
      check_equal(generate(*model, request_of({prompts[i]}, greedy(12))).front(), truth);
      check_equal(together[i], truth);
    }
  }
}

TEST_CASE("generate: stretches that depend on the length do change what the answers are") {
  // Or the case above would say nothing: with the factors of a short text alone the ids differ.
  for (const char* kind : {"longrope", "dynamic"}) {
    config::Config config = tiny_config();
    stretch(config.model, kind);
    const Completion answer = generate(*tiny_model(config), request_of({{1, 2, 3}}, greedy(12))).front();
    config.model.rope_orig_len = config.model.max_seq_len;
    const auto frozen = tiny_model(config);
    const Completion other = generate(*frozen, request_of({{1, 2, 3}}, greedy(12))).front();
    double largest = 0;
    for (std::size_t t = 0; t < 12 && answer.ids[t] == other.ids[t]; ++t) {
      largest = std::max(largest, std::abs(answer.logprobs[t] - other.logprobs[t]));
    }
    CHECK((answer.ids != other.ids || largest > 1e-3));
  }
}

TEST_CASE("generate: ids that end an answer: several ends of a document, and stop ids, which must be the model's") {
  const auto model = tiny_model(byte_config());
  const Completion whole = generate(*model, request_of({{'a', 'b'}}, greedy(10))).front();
  GenerateRequest request = request_of({{'a', 'b'}}, greedy(10));
  request.vocab_size = kByteVocab;
  const auto first = [&](std::int64_t id) {
    return static_cast<std::size_t>(std::find(whole.ids.begin(), whole.ids.end(), id) - whole.ids.begin());
  };
  request.ends = {255, whole.ids[6], whole.ids[4]};
  const std::size_t place = std::min(first(whole.ids[6]), first(whole.ids[4]));
  Completion answer = generate(*model, request).front();
  CHECK(answer.end == Completion::End::eos);
  CHECK(answer.ids == Ids(whole.ids.begin(), whole.ids.begin() + static_cast<std::ptrdiff_t>(place)));
  request.ends = {};
  request.options.stop_ids = {whole.ids[5]};
  answer = generate(*model, request).front();
  CHECK(answer.end == Completion::End::stop);
  CHECK(answer.ids.size() == first(whole.ids[5]));
  request.options.stop_ids = {kByteVocab};
  CHECK_THROWS_WITH(generate(*model, request), Contains("generate.stop_ids: 257") && Contains("0 to 256"));
}

TEST_CASE("generate: a sampler that draws from the default generator leaves it as it was, and draws the same for the same seed") {
  class Draws final : public TokenChooser {
   public:
    at::Tensor next(const at::Tensor& logits) override { return at::multinomial(logits.softmax(-1), 1).squeeze(1); }
  };
  const auto model = tiny_model(tiny_config());
  Draws sampler;
  GenerateOptions options = greedy(8);
  options.strategy = &sampler;
  options.seed = 3;
  at::manual_seed(7);
  const double expected = at::rand({}).item<double>();
  at::manual_seed(7);
  const std::vector<Completion> both = generate(*model, request_of({{1, 2}, {3}}, options));
  CHECK(at::rand({}).item<double>() == expected);
  const std::vector<Completion> again = generate(*model, request_of({{1, 2}, {3}}, options));
  CHECK(both[0].ids == again[0].ids);
  CHECK(both[1].ids == again[1].ids);
  options.seed = 4;  // prompt i draws from seed + i
  CHECK(generate(*model, request_of({{3}}, options)).front().ids == both[1].ids);
}
