#include "unit/engine/tiny.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/CPUGeneratorImpl.h>

#include "model/build.h"
#include "registry/registries.h"

namespace kf::test {

config::Config tiny_config() {
  config::Config c;
  c.model.dim = 32;
  c.model.n_layers = 2;
  c.model.n_heads = 4;
  c.model.n_kv_heads = 2;
  c.model.vocab_size = 97;
  c.model.max_seq_len = 64;
  c.model.ffn_hidden_dim = 48;
  c.model.init_std = 0.1;
  c.train.mixed_precision = "fp32";
  return c;
}

std::shared_ptr<Model> tiny_model(const config::Config& config, std::uint64_t seed, at::ScalarType compute) {
  const Registries registries = native_registries();
  std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, compute, seed);
  return model;
}

at::Tensor logits_of(Model& model, const at::Tensor& tokens, const at::Tensor& doc_ids) {
  const at::NoGradGuard no_grad;
  ForwardContext context;
  context.doc_ids = doc_ids;
  return model.forward(tokens, context);
}

at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::int64_t vocab, std::uint64_t seed) {
  return at::randint(0, vocab, {rows, length}, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kLong));
}

Batch make_batch(const at::Tensor& tokens, const at::Tensor& labels) {
  Batch batch;
  batch.tokens = tokens;
  batch.labels = labels;
  batch.counted = labels.ne(kIgnore).sum().item<std::int64_t>();
  return batch;
}

}  // namespace kf::test
