#include "bench/generation_bench.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <memory>

#include "bench/compare.h"
#include "config/load/load.h"
#include "core/error.h"
#include "generate/generate.h"
#include "model/transformer/build.h"
#include "registry/registries.h"

namespace kf::bench {
namespace {

constexpr std::int64_t kPrompt = 64;
constexpr std::int64_t kAnswer = 128;

/// The same model without its cache.
class Forgetful final : public Model {
 public:
  explicit Forgetful(std::shared_ptr<Model> inner) : inner_(add_child("inner", std::move(inner))) {}
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override { return inner_->forward(tokens, context); }
  at::Tensor hidden(const at::Tensor& tokens, ForwardContext& context) override { return inner_->hidden(tokens, context); }
  at::Tensor project(const at::Tensor& hidden) const override { return inner_->project(hidden); }
  std::optional<OutputHead> head() override { return inner_->head(); }
  KvCache make_cache(std::int64_t, std::int64_t) override { fail(Code::config, "no cache"); }
  bool has_cache() const override { return false; }

 private:
  std::shared_ptr<Model> inner_;
};

GenerateRequest request_of(std::int64_t prompts, std::int64_t batch_size) {
  GenerateRequest request;
  for (std::int64_t i = 0; i < prompts; ++i) {
    request.prompts.emplace_back(static_cast<std::size_t>(kPrompt - i), i + 1);
  }
  request.options.max_new_tokens = kAnswer;
  request.options.temperature = 0;
  request.batch_size = batch_size;
  return request;
}

}  // namespace

void bench_generation(const Registries& registries) {
  config::Request settings;
  settings.overrides = {"--model.dim=256",      "--model.n_layers=4",      "--model.n_heads=8",
                        "--model.n_kv_heads=4", "--model.vocab_size=8192", "--model.max_seq_len=256",
                        "--train.seq_len=256",  "--train.batch_size=1",    "--train.mixed_precision=fp32"};
  const config::Config config = config::load_or_fail(settings, registries.catalog()).config;
  const std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 1);
  const auto slow = std::make_shared<Forgetful>(model);
  const GenerateRequest one = request_of(1, 1);
  compare("generation", {"128 tokens behind 64, with the cache", [=] { generate(*model, one); }},
          {"without", [=] { generate(*slow, one); }});
  const GenerateRequest together = request_of(8, 8);
  const GenerateRequest apart = request_of(8, 1);
  compare("generation", {"8 prompts together", [=] { generate(*model, together); }},
          {"one after the other", [=] { generate(*model, apart); }});
}

}  // namespace kf::bench
