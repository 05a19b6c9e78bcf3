#include "train/generate.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "model/mode.h"

namespace kf {
namespace {

at::Tensor keep_top_k(const at::Tensor& logits, std::int64_t k) {
  const at::Tensor smallest = std::get<0>(logits.topk(std::min(k, logits.size(-1)), -1)).narrow(-1, std::min(k, logits.size(-1)) - 1, 1);
  return logits.masked_fill(logits.lt(smallest), -std::numeric_limits<float>::infinity());
}

at::Tensor keep_top_p(const at::Tensor& logits, double p) {
  const auto [sorted, order] = logits.sort(/*dim=*/-1, /*descending=*/true);
  const at::Tensor probabilities = sorted.softmax(-1);
  const at::Tensor before = probabilities.cumsum(-1) - probabilities;  // mass of the likelier ones
  at::Tensor dropped = before.ge(p);
  dropped.select(-1, 0).fill_(false);  // something must be left
  const at::Tensor kept = sorted.masked_fill(dropped, -std::numeric_limits<float>::infinity());
  return at::empty_like(logits).scatter_(-1, order, kept);
}

class PlainSampler final : public TokenSampler {
 public:
  at::Tensor next(const at::Tensor& logits, const GenerateOptions& options, const at::Generator& generator) override {
    return sample(logits, options, generator);
  }
};

}  // namespace

std::unique_ptr<TokenSampler> plain_sampler() { return std::make_unique<PlainSampler>(); }

at::Tensor sample(const at::Tensor& logits, const GenerateOptions& options, const at::Generator& generator) {
  at::Tensor wide = logits.to(at::kCPU, at::kFloat);
  if (options.temperature == 0) {
    return wide.argmax(-1);
  }
  wide = wide / options.temperature;
  if (options.top_k > 0) {
    wide = keep_top_k(wide, options.top_k);
  }
  if (options.top_p < 1) {
    wide = keep_top_p(wide, options.top_p);
  }
  return at::multinomial(wide.softmax(-1), 1, /*replacement=*/false, generator).squeeze(-1);
}

std::vector<std::int64_t> generate_ids(Model& model, const std::vector<std::int64_t>& prompt, const GenerateOptions& options,
                                       std::optional<std::int64_t> eos, at::Device device,
                                       const std::function<void(std::int64_t)>& on_token) {
  KF_CHECK(!prompt.empty(), Code::config, "the prompt is empty: generation needs a first token");
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const at::Generator generator = at::detail::createCPUGenerator(options.seed);
  const auto length = static_cast<std::int64_t>(prompt.size());
  ForwardContext context;
  KvCache cache = model.make_cache(1, length + options.max_new_tokens);
  context.cache = &cache;
  PlainSampler plain;
  TokenSampler& sampler = options.strategy != nullptr ? *options.strategy : plain;
  sampler.begin(prompt, options);
  at::Tensor input = at::tensor(prompt, at::kLong).unsqueeze(0).to(device);  // (1, T)
  std::vector<std::int64_t> answer;
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    const at::Tensor logits = model.forward(input, context).select(1, input.size(1) - 1);  // (1, V)
    const at::Tensor next = sampler.next(logits, options, generator);
    const auto id = next.item<std::int64_t>();
    if (eos == id) {
      break;
    }
    answer.push_back(id);
    if (on_token) {
      on_token(id);
    }
    input = next.unsqueeze(0).to(device);
  }
  return answer;
}

std::string generate_text(Model& model, const Tokenizer& tokenizer, const std::string& prompt, const GenerateOptions& options,
                          at::Device device, const std::function<void(const std::string&)>& on_text) {
  std::vector<std::int64_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) {
    KF_CHECK(tokenizer.eos_id().has_value(), Code::config,
             "the prompt is empty, and the tokenizer has no end-of-document id to start from");
    ids.push_back(*tokenizer.eos_id());
  }
  const auto on_token = [&](std::int64_t id) {
    if (on_text) {
      on_text(tokenizer.decode(std::vector<std::int64_t>{id}));
    }
  };
  return tokenizer.decode(generate_ids(model, ids, options, tokenizer.eos_id(), device, on_token));
}

}  // namespace kf
