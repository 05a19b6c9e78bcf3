#include "support/tiny.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include "builtins/builtins.h"
#include "layout/gathered_optimizer.h"
#include "layout/parallelize.h"
#include "model/layer/vocabulary.h"
#include "model/transformer/build.h"
#include "registry/registries.h"
#include "train/step/language.h"

namespace kf::test {

config::Config tiny_config() {
  config::Config c;
  c.model.dim = 32;
  c.model.n_layers = 2;
  c.model.n_heads = 4;
  c.model.n_kv_heads = 2;
  c.model.vocab_size = kTinyVocab;
  c.model.max_seq_len = 64;
  c.model.ffn_hidden_dim = 48;
  c.model.init_std = 0.1;
  c.train.mixed_precision = "fp32";
  c.train.seq_len = 32;
  c.train.batch_size = 2;
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

at::Tensor random_tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed, std::int64_t vocab) {
  return at::randint(0, vocab, {rows, length}, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kLong));
}

Batch make_batch(const at::Tensor& tokens, const at::Tensor& labels) {
  Batch batch;
  batch.tokens = tokens;
  batch.labels = labels;
  batch.counted = labels.ne(kIgnore).sum().item<std::int64_t>();
  return batch;
}

FixedLoader::FixedLoader(const at::Tensor& tokens, const at::Tensor& labels, std::int64_t batch_size) {
  for (std::int64_t first = 0; first + batch_size <= tokens.size(0); first += batch_size) {
    batches_.push_back(make_batch(tokens.narrow(0, first, batch_size), labels.narrow(0, first, batch_size)));
  }
}

Bench::Bench(config::Config given, at::ScalarType compute, const World& all) : config(std::move(given)), world(all) {
  model = build_model(config, registries, {&world, nullptr});
  optimizer =
      make_part(registries.optimizer, config.optimizer.name, config, registries, decay_groups(model->parameters(), config.optimizer));
  parallelize(*model, *optimizer, world, unit_options(config.distributed));
  optimizer = gathered_where_needed(std::move(optimizer), *model, world);
  materialize(*model, at::kCPU, compute, static_cast<std::uint64_t>(config.train.seed),
              config.train.param_dtype == "bf16" ? at::kBFloat16 : at::kFloat);
  sum_gradients_in(config.train.grad_dtype == "bf16" ? at::kBFloat16 : at::kFloat, model->parameters());
  loss = make_part(registries.loss, config.train.loss_fn, config, registries);
  make_stepper();
}

StepResult Bench::step(Loader& data, std::int64_t number, double lr, const std::function<void(const StepResult&)>& backward_end) {
  Stepper::Callbacks callbacks;
  if (backward_end) {
    callbacks.backward_end = [&](const StepResult& result) {
      backward_end(result);
      return false;
    };
  }
  return stepper->run(data, number, lr, callbacks);
}

void Bench::make_stepper() {
  StepperOptions options;
  options.batches = config::BatchPlan(config.train, 1);
  options.world = world;
  options.cp_order = sequence_order(config.distributed.cp_order);
  options.guard = config.train;
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.qk_clip_tau = config.optimizer.qk_clip ? config.optimizer.qk_clip_tau : 0;
  options.grad_clip_norm = config.train.grad_clip_norm;
  if (config.train.mixed_precision == "fp16") {
    options.loss_scale = config.train.loss_scale;
  }
  objective = std::make_unique<Language>(*loss, LanguageOptions{config.train.z_loss_weight, config.model.mtp_layers,
                                                                config.train.mtp_loss_weight, vocabulary_ranks(*model, world)});
  stepper = std::make_unique<Stepper>(*model, *optimizer, *objective, options);
}

std::vector<at::Tensor> Bench::masters() const {
  std::vector<at::Tensor> out;
  for (const ParameterPtr& parameter : model->parameters()) {
    out.push_back(parameter->master.detach().clone());
  }
  return out;
}

ParameterPtr free_weight(const std::string& name, const at::Tensor& start, at::ScalarType type) {
  auto parameter = std::make_shared<Parameter>();
  parameter->name = name;
  parameter->shape = start.sizes().vec();
  parameter->role = start.dim() < 2 ? Role::vector : Role::hidden;
  parameter->master = start.clone();
  parameter->value = type == at::kFloat ? parameter->master : parameter->master.to(type);
  parameter->value.set_requires_grad(true);
  return parameter;
}

bool bitwise_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) {
      return false;
    }
  }
  return true;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) { return ((a - b).abs().max() / b.abs().max()).item<double>(); }

}  // namespace kf::test
